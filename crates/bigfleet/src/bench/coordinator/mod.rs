//! `coordinator`: three replicas as processes of their own on one disk of this machine.
//!
//! Every commit here waits for two of three logs on the same disk, so the raw rate of
//! fsync is measured in the same run, on the same disk: one commit at a time cannot be
//! faster than that, many at once share an fsync.

mod caller;
mod commits;
mod domains;
mod replicas;
mod reports;

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use self::replicas::Replicas;
use super::{
    Args,
    grade::{at_least, at_most, mebibytes, spaced, told},
    measure::{Run, quantile_ms},
    quality::Grade,
};
use crate::error::Error;

/// Flags of `bigfleet bench coordinator`.
#[derive(clap::Args)]
#[command(next_help_heading = "Scenario `coordinator`")]
pub(crate) struct CoordinatorArgs {
    /// Seconds for each number of clients that commit
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    commit_seconds: u64,
    /// Shards that report
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    shards: usize,
    /// Seconds between two reports of a shard
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    report_interval: u64,
    /// Seconds of reports that count, after every shard is registered
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    report_seconds: u64,
    /// Pools and shortfalls of each report; 256 pools are the most that a shard sends
    #[arg(long, value_name = "N", default_value_t = 20)]
    report_pools: usize,
    /// Domains of the fleet whose snapshots are measured
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    domains: usize,
    /// Multiplies the timers of consensus, for a machine that others use, too
    #[arg(
        long, value_name = "FACTOR", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=20)
    )]
    timer_scale: u32,
    /// Directory on the disk to measure, for logs and snapshots [default: that of temporary
    /// files]
    #[arg(long, value_name = "DIR")]
    coordinator_dir: Option<PathBuf>,
}

/// Bars of the coordinator (coordinator chapter §15).
const COMMITS: f64 = 2_000.0;
const REPORT_MS: f64 = 20.0;
const RESIDENT_MIB: f64 = 1_024.0;
const CUT_SECONDS: f64 = 1.0;

pub(super) fn coordinator(run: &Run, args: &Args) -> Result<Vec<Grade>, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let grades = runtime.block_on(measure(run, &args.coordinator));
    runtime.shutdown_background();
    grades
}

async fn measure(run: &Run, args: &CoordinatorArgs) -> Result<Vec<Grade>, Error> {
    let parent = args.coordinator_dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = tempfile::Builder::new().prefix("bigfleet-bench-").tempdir_in(parent)?;
    let mut grades = Vec::new();
    let raw = raw_fsyncs(dir.path())?;
    grades.push(told("raw fsyncs per second of 512 bytes, one after the other", rate(raw)));
    let mut replicas = Replicas::open(dir.path(), args.timer_scale).await?;
    run.progress.expect("commits, reports, domains", 3);
    commits::measure(&replicas, Duration::from_secs(args.commit_seconds), &mut grades).await?;
    let raw = raw_fsyncs(dir.path())?;
    grades.push(told("the same, after the commits", rate(raw)));
    run.progress.step();
    reports::measure(&replicas, args, &mut grades).await?;
    run.progress.step();
    domains::measure(&mut replicas, args.domains, dir.path(), &mut grades).await?;
    run.progress.step();
    Ok(grades)
}

fn rate(per_second: f64) -> String {
    format!("{per_second:.0}")
}

/// Appends and syncs, as a log without any batching would, for two seconds.
fn raw_fsyncs(dir: &Path) -> Result<f64, Error> {
    let path = dir.join("raw");
    let mut file = File::create(&path)?;
    let (began, mut count) = (Instant::now(), 0_u32);
    while began.elapsed() < Duration::from_secs(2) {
        file.write_all(&[0x5a; 512])?;
        file.sync_data()?;
        count += 1;
    }
    std::fs::remove_file(path)?;
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

/// Median, 99th and greatest, in ms.
fn quantiles(mut samples: Vec<Duration>) -> [f64; 3] {
    samples.sort_unstable();
    [50, 99, 100].map(|percent| quantile_ms(&samples, percent))
}
