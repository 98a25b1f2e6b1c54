//! Thousands of shards that report to one leader.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bigfleet_wire::v1alpha1::{PoolRow, ShardReport, ShardSummary, Shortfall};
use tokio::{
    task::JoinSet,
    time::{Instant as Tick, sleep_until},
};

use super::{
    CoordinatorArgs, REPORT_MS, RESIDENT_MIB, at_most,
    caller::{Caller, turned_away},
    mebibytes, quantiles, rate,
    replicas::{Client, Replicas},
    spaced, told,
};
use crate::{bench::quality::Grade, error::Error};

/// Each connection carries so many shards.
const PER_CONNECTION: usize = 20;

pub(super) async fn measure(
    replicas: &Replicas,
    args: &CoordinatorArgs,
    grades: &mut Vec<Grade>,
) -> Result<(), Error> {
    replicas.settled().await?;
    let interval = Duration::from_secs(args.report_interval.max(1));
    let rounds = args.report_seconds.div_ceil(args.report_interval.max(1)).max(1);
    let report = Arc::new(report(args.report_pools));
    let mut tasks = JoinSet::new();
    let mut caller = Caller::new(replicas)?;
    let began = Tick::now();
    for shard in 0..args.shards {
        if shard % PER_CONNECTION == 0 {
            caller = Caller::new(replicas)?;
        }
        // Spread evenly over the interval, as their jitter makes them in the end.
        let offset = interval * u32::try_from(shard).unwrap_or(u32::MAX)
            / u32::try_from(args.shards.max(1)).unwrap_or(u32::MAX);
        let one = Shard { caller: caller.clone(), number: shard, report: report.clone() };
        tasks.spawn(one.live(began + offset, interval, rounds));
    }
    let (mut registering, mut samples) = (Vec::new(), Vec::new());
    for done in tasks.join_all().await {
        let (first, others) = done?;
        registering.push(first);
        samples.extend(others);
    }
    let per_second =
        samples.len() as f64 / (interval * u32::try_from(rounds).unwrap_or(1)).as_secs_f64();
    grades.push(told("shards that report", args.shards.to_string()));
    grades.push(told("registration p50, p99, max, ms", spaced(&quantiles(registering))));
    grades.push(told("reports per second", rate(per_second)));
    let found = quantiles(samples);
    grades.push(told("report p50, p99, max, ms", spaced(&found)));
    grades.push(at_most("report p99, ms", found[1], REPORT_MS));
    grades.push(told("reports that had to look for a leader", turned_away().to_string()));
    let leader = replicas.settled().await?;
    let (now, peak) = replicas.resident(leader);
    grades.push(told("resident memory of the leader", mebibytes(now)));
    grades.push(at_most("peak of it, MiB", peak as f64 / f64::from(1 << 20), RESIDENT_MIB));
    Ok(())
}

struct Shard {
    caller: Caller,
    number: usize,
    report: Arc<ShardReport>,
}

impl Shard {
    /// The first report registers; what that took, and what each other took.
    async fn live(
        mut self,
        first: Tick,
        interval: Duration,
        rounds: u64,
    ) -> Result<(Duration, Vec<Duration>), Error> {
        let mut samples = Vec::new();
        for round in 0..=rounds {
            sleep_until(first + interval * u32::try_from(round).unwrap_or(u32::MAX)).await;
            let report = ShardReport {
                shard_id: format!("shard-{}", self.number),
                shard_address: format!("10.0.0.1:{}", self.number),
                cycle: i64::try_from(round).unwrap_or(i64::MAX) + 1,
                instance: self.number as u64 + 1,
                ..(*self.report).clone()
            };
            let began = Instant::now();
            let call = |mut client: Client| {
                let report = report.clone();
                async move { client.report_shard(report).await }
            };
            self.caller.call(call).await?;
            samples.push(began.elapsed());
        }
        let others = samples.split_off(1);
        Ok((samples.first().copied().unwrap_or_default(), others))
    }
}

/// A report with so many pools, and shortfalls up to the most there are.
fn report(pools: usize) -> ShardReport {
    let pool = |number: usize| PoolRow {
        instance_type: format!("type-{number}"),
        zone: format!("zone-{}", number % 8),
        idle: 10,
        speculative: 100,
        configured: 1_000,
        ..PoolRow::default()
    };
    let shortfall = |number: usize| Shortfall {
        priority: i32::try_from(number).unwrap_or_default(),
        age_cycles: 3,
        ..Shortfall::default()
    };
    ShardReport {
        shard_epoch: 1,
        summary: Some(ShardSummary {
            total_machines: 25_000,
            free_machines: 500,
            pools: (0..pools.min(256)).map(pool).collect(),
            ..ShardSummary::default()
        }),
        shortfalls: (0..pools.min(100)).map(shortfall).collect(),
        ..ShardReport::default()
    }
}
