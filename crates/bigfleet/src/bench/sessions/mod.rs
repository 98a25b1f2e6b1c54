//! `sessions`: thousands of operators over real gRPC against a shard process.
//!
//! This process plays the operators, who ask for a twelfth of the machines, and the
//! provider, of whose machines 2 % change a minute. The shard is a child of its own,
//! so that its memory and its processor time are its own, too; its cycles are read
//! off its `/metrics`.

mod cycles;
mod http;
mod machines;
mod shard;
mod stalled;

use std::time::{Duration, Instant};

use bigfleet_scripted::load::{self, Figures, LoadOptions, Progress as Standing};
use tokio::time::sleep;

use self::{cycles::Cycles, shard::Child};
use super::{
    Args,
    grade::{at_least, at_most, mebibytes, spaced, told},
    measure::Run,
    quality::Grade,
};
use crate::error::Error;

/// Flags of `bigfleet bench sessions`.
#[derive(clap::Args)]
#[command(next_help_heading = "Scenario `sessions`")]
pub(crate) struct SessionFlags {
    /// Operators
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    sessions: usize,
    /// Operators that share a connection, 1 to 200
    #[arg(long, value_name = "N", default_value_t = 100)]
    sessions_per_connection: usize,
    /// Roll-ups per second of all operators together
    #[arg(long, value_name = "RATE", default_value_t = 5_000.0)]
    rollups_per_second: f64,
    /// Needs of each roll-up
    #[arg(long, value_name = "N", default_value_t = 5)]
    needs_per_rollup: usize,
    /// Needs that change from one roll-up to the next, of each thousand
    #[arg(long, value_name = "N", default_value_t = 2)]
    churn_per_mille: u64,
    /// Seconds before anything counts: machines for the first demand are bound
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    warm_up: u64,
    /// Seconds that count; with --stalled, without these operators and again with them
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Machines of the provider
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    machines: usize,
    /// Operators in the second half that send and never read
    #[arg(long, value_name = "N", default_value_t = 0)]
    stalled: usize,
    /// Read the whole inventory before each cycle, not what changed
    #[arg(long)]
    full_lists: bool,
    /// A shard that runs already, instead of a child
    #[arg(long, value_name = "ADDR", requires = "target_metrics")]
    target: Option<String>,
    /// Where that shard serves /metrics
    #[arg(long, value_name = "ADDR", requires = "target")]
    target_metrics: Option<String>,
}

/// Bars of the shard (issue of its making): 5,000 roll-ups a second, 100 ms, 10 s.
const CYCLE_MS: f64 = 100.0;
const READY_SECONDS: f64 = 10.0;
const STALL_PERCENT: f64 = 5.0;
/// The generator's own noise at the edges.
const RATE_SHARE: f64 = 0.99;

/// What a load came to.
struct Outcome {
    figures: Figures,
    /// While nobody stalled, and while some did.
    quiet: Cycles,
    stalled: Option<Cycles>,
}

pub(super) fn sessions(run: &Run, args: &Args) -> Result<Vec<Grade>, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let grades = runtime.block_on(measure(run, &args.sessions));
    runtime.shutdown_background();
    grades
}

async fn measure(run: &Run, args: &SessionFlags) -> Result<Vec<Grade>, Error> {
    let mut grades = Vec::new();
    let child = match (&args.target, &args.target_metrics) {
        (Some(_), Some(_)) => None,
        _ => Some(start(args, &mut grades).await?),
    };
    let addr = child.as_ref().map(|child| child.addr.clone()).or_else(|| args.target.clone());
    let metrics =
        child.as_ref().map(|child| child.metrics.clone()).or_else(|| args.target_metrics.clone());
    let (addr, metrics) = (addr.unwrap_or_default(), metrics.unwrap_or_default());
    let outcome = load(run, args, &addr, &metrics).await?;
    tell(args, &outcome, &mut grades);
    if let Some(child) = &child {
        let (now, peak) = child.resident();
        grades.push(told("resident memory of the shard under load", mebibytes(now)));
        grades.push(told("peak of it", mebibytes(peak)));
    }
    Ok(grades)
}

/// A shard that is ready, and what that took.
async fn start(args: &SessionFlags, grades: &mut Vec<Grade>) -> Result<Child, Error> {
    let provider = machines::serve(args.machines).await?;
    let began = Instant::now();
    let child = Child::start(&provider, args.full_lists)?;
    child.ready().await?;
    grades.push(at_most("ready after start, s", began.elapsed().as_secs_f64(), READY_SECONDS));
    // What loading took for a while is given back.
    sleep(Duration::from_secs(5)).await;
    let (now, peak) = child.resident();
    grades.push(told("resident memory of the shard without sessions", mebibytes(now)));
    grades.push(told("peak of it", mebibytes(peak)));
    Ok(child)
}

async fn load(run: &Run, args: &SessionFlags, addr: &str, metrics: &str) -> Result<Outcome, Error> {
    let half = Duration::from_secs(args.seconds);
    let halves = if args.stalled > 0 { 2 } else { 1 };
    let mut options = LoadOptions::new(addr);
    options.sessions = args.sessions;
    options.sessions_per_connection = args.sessions_per_connection;
    options.roll_ups_per_second = args.rollups_per_second;
    options.needs_per_roll_up = args.needs_per_rollup;
    options.churn_per_mille = args.churn_per_mille;
    options.warm_up = Duration::from_secs(args.warm_up);
    options.duration = half * halves;
    options.patience = Duration::from_secs(120);
    run.progress.expect("opening, warming up, measuring", args.warm_up + args.seconds);
    let (opened, opening) = tokio::sync::oneshot::channel();
    let mut opened = Some(opened);
    let mut told = 0;
    let sessions = args.sessions as u64;
    let progress = |standing: Standing| {
        // The first roll-up is sent when all sessions stand.
        if standing.sent > 0 || standing.sessions_alive >= sessions {
            opened.take().map(|opened| opened.send(()));
        }
        run.progress.step();
        told += 1;
        if told % 10 == 0 {
            eprintln!(
                "sessions: {:.0} s, {} stand, {} sent, {} answered",
                standing.elapsed.as_secs_f64(),
                standing.sessions_alive,
                standing.sent,
                standing.answered
            );
        }
    };
    let watch = async {
        // It is dropped only when the load is over.
        drop(opening.await);
        sleep(Duration::from_secs(args.warm_up)).await;
        let before = Cycles::read(metrics).await?;
        sleep(half).await;
        let between = Cycles::read(metrics).await?;
        if args.stalled == 0 {
            return Ok((between.since(&before), None));
        }
        let stalled = stalled::operators(addr, args.stalled);
        sleep(half.saturating_sub(Duration::from_secs(1))).await;
        let after = Cycles::read(metrics).await?;
        drop(stalled);
        Ok::<_, Error>((between.since(&before), Some(after.since(&between))))
    };
    let (figures, watched) = tokio::join!(load::run(options, progress), watch);
    let (quiet, stalled) = watched?;
    let figures = figures.map_err(|error| Error::Load(error.to_string()))?;
    Ok(Outcome { figures, quiet, stalled })
}

fn tell(args: &SessionFlags, outcome: &Outcome, grades: &mut Vec<Grade>) {
    let figures = &outcome.figures;
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    grades.push(at_least("sessions alive", figures.sessions_alive as f64, args.sessions as f64));
    grades.push(told("sessions opened in, s", format!("{:.1}", figures.opening.as_secs_f64())));
    let rate = args.rollups_per_second * RATE_SHARE;
    let accepted = figures.accepted as f64 / figures.measured.as_secs_f64().max(f64::MIN_POSITIVE);
    grades.push(at_least("roll-ups accepted per second", accepted, rate));
    let lost = figures.rejected + figures.held + figures.unanswered + figures.dropped;
    grades.push(at_most("roll-ups rejected, held, unanswered or dropped", lost as f64, 0.0));
    grades.push(told("roll-ups superseded", figures.superseded.to_string()));
    let latency = figures.latency;
    let quantiles = [latency.p50, latency.p99, latency.p999, latency.max].map(ms);
    grades.push(told("ack latency p50, p99, p99.9, max, ms", spaced(&quantiles)));
    let behind = [figures.behind.p50, figures.behind.p99, figures.behind.max].map(ms);
    grades.push(told("generator behind p50, p99, max, ms", spaced(&behind)));
    let done = [figures.bootstraps as f64, figures.reclaims as f64];
    grades.push(told("bootstraps and reclaims of operators", spaced(&done)));
    if let Some(error) = &figures.first_error {
        grades.push(told("first error", error.clone()));
    }
    let quiet = &outcome.quiet;
    let cycle = [quiet.mean_ms(), quiet.quantile_ms(0.5)];
    grades.push(told("cycles", format!("{:.0}", quiet.count())));
    grades.push(told("cycle mean and p50, ms", spaced(&cycle)));
    grades.push(at_most("cycle p99, ms", quiet.quantile_ms(0.99), CYCLE_MS));
    for (phase, mean) in quiet.phases() {
        grades.push(told("phase mean, ms", format!("{phase} {mean:.2}")));
    }
    let Some(stalled) = &outcome.stalled else { return };
    let cycle = [stalled.mean_ms(), stalled.quantile_ms(0.5), stalled.quantile_ms(0.99)];
    grades.push(told("cycle mean, p50, p99 with stalled operators, ms", spaced(&cycle)));
    let change = |of: fn(&Cycles) -> f64| (of(stalled) / of(quiet) - 1.0) * 100.0;
    grades.push(told("change of the mean by them, %", format!("{:+.1}", change(Cycles::mean_ms))));
    let p99 = change(|cycles| cycles.quantile_ms(0.99));
    grades.push(at_most("change of cycle p99 by them, %", p99, STALL_PERCENT));
}
