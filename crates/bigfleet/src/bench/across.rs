//! `across`: what a coordinator computes for shards that share a provider, in memory, by
//! the code of its process: Assignments, a lost zone, passes of rebalancing (coordinator
//! chapter §15).

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use bigfleet_coordinator::{
    rebalance::{Figures, Pass, Picture, Rebalancer, Settings},
    reports::{Begun, LivenessLimits, Now, Reports, batches},
    state::{Command, Domain, ShardId, State},
};
use bigfleet_model::{
    Operator,
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};
use bigfleet_wire::v1alpha1 as wire;

use super::{
    Args,
    grade::{at_most, spaced, told},
    measure::{Run, quantile_ms},
    quality::Grade,
    random::Random,
};
use crate::error::Error;

/// Flags of `bigfleet bench across`.
#[derive(clap::Args)]
#[command(next_help_heading = "Scenario `across`")]
pub(crate) struct AcrossArgs {
    /// Shards that own the domains
    #[arg(long, value_name = "N", default_value_t = 200)]
    owners: usize,
    /// Domains of each
    #[arg(long, value_name = "N", default_value_t = 500)]
    owned: usize,
    /// Domains that change hands when a zone is lost
    #[arg(long, value_name = "N", default_value_t = 33_000)]
    lost: usize,
    /// Shards that a pass looks at, each with 100 shortfalls and 256 pools
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    rebalanced: usize,
}

/// Milliseconds of a pass (coordinator chapter §15).
const PASS_MS: f64 = 500.0;

const FLEET: &str = "bench.00000000";
const SHORTFALLS: usize = 100;
const POOLS: usize = 256;
const PASSES: usize = 5;

pub(super) fn across(run: &Run, args: &Args) -> Result<Vec<Grade>, Error> {
    let args = &args.across;
    let mut grades = Vec::new();
    run.progress.expect("assignments, passes", 3);
    assignments(args, &mut grades)?;
    run.progress.step();
    for (what, bar, world) in [
        (
            "pass, machines for a part of the shortfalls: p50, max, ms",
            "its greatest, ms",
            World::Some,
        ),
        ("pass, hardly a machine for any: p50, max, ms", "its greatest, too, ms", World::Hardly),
    ] {
        passes(args, world, (what, bar), &mut grades);
        run.progress.step();
    }
    Ok(grades)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Load(error.to_string())
}

fn shard(number: usize) -> ShardId {
    format!("shard-{number:04}").as_str().into()
}

fn domain(number: usize) -> Domain {
    Domain::new("topology.kubernetes.io/rack", &format!("region-1-zone-a-rack-{number:06}"))
}

fn spread(mut samples: Vec<Duration>) -> [f64; 2] {
    samples.sort_unstable();
    [50, 100].map(|percent| quantile_ms(&samples, percent))
}

/// A leader without consensus.
struct Leader {
    state: State,
    reports: Reports,
    index: u64,
}

impl Leader {
    fn new() -> Result<Self, Error> {
        let reports = Reports::new(1, LivenessLimits::default(), 1);
        let mut leader = Self { state: State::default(), reports, index: 0 };
        leader.commit(&Command::InitFleet { fleet_id: FLEET.to_owned() })?;
        Ok(leader)
    }

    fn commit(&mut self, command: &Command) -> Result<(), Error> {
        self.index += 1;
        let outcome = self.state.apply(self.index, command);
        self.reports.committed(&self.state, &outcome, NOW);
        outcome.map(drop).map_err(failed)
    }

    fn report(&mut self, id: &ShardId, stored: (i64, u64)) -> Result<wire::ReportAck, Error> {
        let last = self.reports.snapshots(id).first().map_or(0, |last| last.cycle);
        let report = wire::ShardReport {
            shard_id: id.to_string(),
            cycle: last + 1,
            shard_epoch: 1,
            instance: 1,
            fleet_id: FLEET.to_owned(),
            assignment_version: stored.0,
            assignment_digest: stored.1,
            ..wire::ShardReport::default()
        };
        if let Begun::Commit(command) =
            self.reports.begin(&self.state, &report, NOW).map_err(failed)?
        {
            self.commit(&command)?;
        }
        let mut taken = self.reports.take(&self.state, report, NOW).map_err(failed)?;
        for command in batches(std::mem::take(&mut taken.commands)) {
            self.commit(&command)?;
        }
        Ok(self.reports.answer(&self.state, &taken, NOW))
    }
}

const NOW: Now = Now { monotonic: Duration::from_secs(1), unix_nanos: 1 };

fn assignments(args: &AcrossArgs, grades: &mut Vec<Grade>) -> Result<(), Error> {
    let mut leader = Leader::new()?;
    let count = args.owners * args.owned;
    for number in 0..args.owners {
        leader.report(&shard(number), (0, 1))?;
    }
    let began = Instant::now();
    let owner = |number: usize| shard(number / args.owned.max(1));
    let assign = |number| Command::AssignDomain { domain: domain(number), shard: owner(number) };
    for entry in batches((0..count).map(assign).collect()) {
        leader.commit(&entry)?;
    }
    grades.push(told("domains", count.to_string()));
    grades.push(told("assigned in batches, ms", milliseconds(began)));

    let mut samples = Vec::new();
    let mut stored = Vec::new();
    for number in 0..args.owners {
        let began = Instant::now();
        let ack = leader.report(&shard(number), (0, 1))?;
        samples.push(began.elapsed());
        stored.push(ack.assignment.map_or((0, 1), |one| (one.version, one.digest)));
    }
    let what = "a report answered with an Assignment: p50, max, ms";
    grades.push(told(what, spaced(&spread(samples))));

    lost_zone(args, &mut leader, &stored, grades)
}

fn lost_zone(
    args: &AcrossArgs,
    leader: &mut Leader,
    stored: &[(i64, u64)],
    grades: &mut Vec<Grade>,
) -> Result<(), Error> {
    let lost = args.lost.min(args.owners.saturating_sub(1) * args.owned);
    let losers = lost.div_ceil(args.owned.max(1));
    let gainers = args.owners - losers;
    let moves = (0..lost).map(|number| Command::MoveDomain {
        domain: domain(number),
        from: shard(number / args.owned.max(1)),
        to: shard(losers + number % gainers.max(1)),
    });
    let entries = batches(moves.collect());
    let (began, count) = (Instant::now(), entries.len());
    for entry in entries {
        leader.commit(&entry)?;
    }
    grades.push(told("domains of a lost zone", lost.to_string()));
    grades.push(told("entries that move them", count.to_string()));
    grades.push(told("applied in, ms", milliseconds(began)));
    let (mut losing, mut releasing, mut gaining) = (Vec::new(), Vec::new(), Vec::new());
    for (number, stored) in stored.iter().enumerate().take(losers) {
        let began = Instant::now();
        let ack = leader.report(&shard(number), *stored)?;
        losing.push(began.elapsed());
        let now = ack.assignment.map_or((0, 1), |one| (one.version, one.digest));
        // It is quiet at once: the next report lacks what it lost.
        let began = Instant::now();
        leader.report(&shard(number), now)?;
        releasing.push(began.elapsed());
    }
    for (number, stored) in stored.iter().enumerate().skip(losers) {
        let began = Instant::now();
        black_box(leader.report(&shard(number), *stored)?);
        gaining.push(began.elapsed());
    }
    let left = leader.state.counts().rows_releasing;
    if left > 0 {
        return Err(failed(format!("{left} domains were not let go of")));
    }
    for (what, samples) in [
        ("report of a loser that learns of it: p50, max, ms", losing),
        ("report that lets go, with its commit: p50, max, ms", releasing),
        ("report of a gainer: p50, max, ms", gaining),
    ] {
        grades.push(told(what, spaced(&spread(samples))));
    }
    Ok(())
}

fn milliseconds(since: Instant) -> String {
    format!("{:.1}", since.elapsed().as_secs_f64() * 1e3)
}

/// How much there is to move.
#[derive(Clone, Copy, PartialEq, Eq)]
enum World {
    Some,
    Hardly,
}

fn passes(
    args: &AcrossArgs,
    world: World,
    (what, bar): (&'static str, &'static str),
    grades: &mut Vec<Grade>,
) {
    let (picture, read) = picture(args.rebalanced, world);
    let mut samples = Vec::new();
    let mut pass = Pass::default();
    for number in 0..PASSES {
        // Each by a leader of its own: nothing rests.
        let mut rebalancer = Rebalancer::new(Settings::default(), Duration::ZERO, number as u64);
        let began = Instant::now();
        pass = rebalancer.pass(&picture, Duration::from_secs(100));
        samples.push(began.elapsed());
    }
    if world == World::Some {
        let shortfalls = args.rebalanced * SHORTFALLS;
        grades.push(told("shortfalls of a pass", shortfalls.to_string()));
        grades.push(told("rows of pools", (args.rebalanced * POOLS).to_string()));
        grades.push(told("reading a report: p50, max, ms", spaced(&spread(read))));
    }
    let found = spread(samples);
    grades.push(told(what, spaced(&found)));
    grades.push(told("transfers it begins", pass.begin.len().to_string()));
    grades.push(at_most(bar, found[1], PASS_MS));
}

fn picture(shards: usize, world: World) -> (Picture, Vec<Duration>) {
    let mut random = Random::new(7);
    let mut read = Vec::new();
    let mut picture = Picture::default();
    for number in 0..shards {
        let pools = (0..POOLS).map(|at| pool(&mut random, (number + at) % 512, world)).collect();
        let summary = wire::ShardSummary {
            provider_address: "provider:9000".to_owned(),
            pools,
            ..wire::ShardSummary::default()
        };
        let shortfalls: Vec<_> =
            (0..SHORTFALLS).map(|_| shortfall(&mut random, number, world)).collect();
        let began = Instant::now();
        let figures = Figures::of(&summary, &shortfalls);
        read.push(began.elapsed());
        picture.shards.insert(shard(number), Arc::new(figures));
    }
    (picture, read)
}

fn resources(cores: usize, gibibytes: usize) -> Option<wire::Resources> {
    let resources =
        [("cpu".to_owned(), cores.to_string()), ("memory".to_owned(), format!("{gibibytes}Gi"))];
    Some(wire::Resources { resources: resources.into() })
}

/// 64 types in 8 zones.
fn pool(random: &mut Random, cell: usize, world: World) -> wire::PoolRow {
    let cores = 2 << (cell % 6);
    let idle = match world {
        World::Some => random.below(12),
        // A donor keeps one, so one is left.
        World::Hardly => random.below(3),
    };
    wire::PoolRow {
        instance_type: format!("type-{:02}", cell / 8),
        zone: format!("zone-{}", cell % 8),
        capacity_type: 3,
        idle: i32::try_from(idle).unwrap_or_default(),
        speculative: i32::try_from(random.below(3)).unwrap_or_default(),
        configured: 900,
        min_priority: 100,
        min_interruption_bucket: 12,
        allocatable: resources(cores, cores * 4),
    }
}

/// Some name a zone, some a few types; all have waited long enough, and none is worth
/// the work of others.
fn shortfall(random: &mut Random, shard: usize, world: World) -> wire::Shortfall {
    let mut requirements = Vec::new();
    let mut named = |key: &str, values: Vec<String>| {
        requirements.push(wire::NodeSelectorRequirement {
            key: key.to_owned(),
            operator: Operator::In.to_wire(),
            values,
        });
    };
    // A shard lacks a few types, so that others have them to give.
    let first = (shard * 7 + random.below(5)) % 60;
    named(INSTANCE_TYPE_LABEL, (first..first + 2).map(|one| format!("type-{one:02}")).collect());
    if random.below(2) == 0 {
        named(ZONE_LABEL, vec![format!("zone-{}", random.below(8))]);
    }
    let cores = match world {
        World::Some => random.within(1, 64),
        World::Hardly => random.within(20_000, 90_000),
    };
    wire::Shortfall {
        requirements,
        deficit: resources(cores, cores * 4),
        min_unit: resources(1 << random.below(4), 4),
        priority: i32::try_from(random.below(1_000)).unwrap_or_default(),
        age_cycles: i32::try_from(random.within(6, 60)).unwrap_or_default(),
        interruption_penalty_bucket: 10,
    }
}
