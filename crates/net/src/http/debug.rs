//! `/debug/`: what a running process is doing.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Query, State},
    http::StatusCode,
    response::Html,
    routing::get,
};
use pprof::{ProfilerGuardBuilder, Report};
use tokio::{runtime::Handle, sync::Semaphore};

const DEFAULT_SECONDS: u64 = 10;
const MAX_SECONDS: u64 = 60;
/// Off the round numbers, so that periodic work is not sampled in step.
const SAMPLES_PER_SECOND: i32 = 99;

const INDEX: &str = "<!doctype html><title>debug</title><ul>\
<li><a href=\"/debug/runtime\">/debug/runtime</a> workers, tasks and queues of the async runtime\
<li><a href=\"/debug/profile?seconds=10\">/debug/profile?seconds=10</a> CPU profile as collapsed \
stacks, 1 to 60 seconds\
</ul>\n";

pub(super) fn router() -> Router {
    Router::new()
        .route("/debug/", get(async || Html(INDEX)))
        .route("/debug/runtime", get(async || runtime()))
        .route("/debug/profile", get(profile))
        .with_state(Arc::new(Semaphore::new(1)))
}

fn runtime() -> String {
    let metrics = Handle::current().metrics();
    let mut text = format!(
        "workers {}\nalive_tasks {}\nglobal_queue_depth {}\n",
        metrics.num_workers(),
        metrics.num_alive_tasks(),
        metrics.global_queue_depth()
    );
    #[cfg(target_has_atomic = "64")]
    for worker in 0..metrics.num_workers() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "worker{{index=\"{worker}\"}} parks {} busy_seconds {:.3}",
            metrics.worker_park_count(worker),
            metrics.worker_total_busy_duration(worker).as_secs_f64()
        );
    }
    text
}

type Answer = Result<String, (StatusCode, String)>;

async fn profile(
    State(only_one): State<Arc<Semaphore>>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Answer {
    let seconds = match query.get("seconds") {
        None => DEFAULT_SECONDS,
        Some(text) => {
            text.parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds)).ok_or_else(
                || (StatusCode::BAD_REQUEST, format!("seconds must be 1 to {MAX_SECONDS}\n")),
            )?
        }
    };
    let _running = only_one.try_acquire().map_err(|_| {
        (StatusCode::CONFLICT, "a profile is being taken; try again later\n".to_owned())
    })?;
    let failed = |error: &dyn std::fmt::Display| {
        (StatusCode::INTERNAL_SERVER_ERROR, format!("profile: {error}\n"))
    };
    let guard = ProfilerGuardBuilder::default()
        .frequency(SAMPLES_PER_SECOND)
        // Unwinding inside these from a signal handler can deadlock.
        .blocklist(&["libc", "libgcc", "pthread", "vdso"])
        .build()
        .map_err(|error| failed(&error))?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    // Resolving symbols takes seconds of CPU in a large binary.
    tokio::task::spawn_blocking(move || guard.report().build().map(|report| collapse(&report)))
        .await
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))
}

/// One line per stack, outermost frame first, with its number of samples:
/// the form that flame graph tools read.
fn collapse(report: &Report) -> String {
    let mut stacks: BTreeMap<String, isize> = BTreeMap::new();
    for (frames, samples) in &report.data {
        let mut stack = frames.thread_name_or_id();
        for symbol in frames.frames.iter().rev().flat_map(|frame| frame.iter().rev()) {
            stack.push(';');
            stack.push_str(&symbol.name());
        }
        *stacks.entry(stack).or_default() += samples;
    }
    stacks.into_iter().fold(String::new(), |mut text, (stack, samples)| {
        let _ = writeln!(text, "{stack} {samples}");
        text
    })
}
