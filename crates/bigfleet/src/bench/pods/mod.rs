//! `pods`: the whole path of demand in memory, pod → request → roll-up → gate →
//! decision, with the code of the processes that it runs through.

mod rollup;
mod workload;

use std::{
    borrow::Borrow,
    hint::black_box,
    time::{Duration, Instant},
};

use bigfleet_crds::CapacityRequest;
use bigfleet_model::{ClusterId, Need, gate::demand};
use bigfleet_operator::rollup::{Fold, Projector};
use bigfleet_unschedulable_pod_controller::{
    desired::{Context, Settings, Step, desired},
    pod::Pod,
};
use bigfleet_wire::v1alpha1::{self as wire, operator_message::Payload};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as Whole;
use prost::Message as _;
pub(super) use rollup::rollup;

use super::{
    Args,
    driver::{Driver, Pass},
    grade::{at_most, told},
    measure::{Run, quantile_ms},
    quality::Grade,
};
use crate::error::Error;

/// Milliseconds from 10,000 pods to their decision; more pods get more.
const BAR_10K: f64 = 80.0;

const CLUSTER: &str = "bench";

/// Flags of `bigfleet bench pods` and `bench rollup`.
#[derive(clap::Args)]
#[command(next_help_heading = "Scenarios `pods` and `rollup`")]
pub(crate) struct PodsArgs {
    /// Pods that appear at once
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pods: usize,
    /// Instance types on offer
    #[arg(long, value_name = "N", default_value_t = 400)]
    types: usize,
    /// Requests of the cluster whose roll-ups are measured
    #[arg(long, value_name = "N", default_value_t = 25_000)]
    requests: usize,
}

/// What the stages took, in the order of the path.
type Stages = [Duration; 4];

const STAGES: [&str; 4] = [
    "p50 of pods to requests, ms",
    "p50 of requests to a roll-up, ms",
    "p50 of the demand gate, ms",
    "p50 of the decision, ms",
];

/// Pods become a decision.
pub(super) fn pods(run: &Run, args: &Args) -> Result<Vec<Grade>, Error> {
    let args = &args.pods;
    let pods: Vec<_> = workload::pods(args.pods).collect();
    let mut driver = run.driver();
    workload::machines(&mut driver, args.types, args.pods);
    run.progress.expect("measuring", u64::from(run.cycles));
    path(run.name, &mut driver, &pods)?;
    let (mut totals, mut stages) = (Vec::new(), [const { Vec::new() }; 4]);
    for _ in 0..run.cycles {
        let taken = path(run.name, &mut driver, &pods)?;
        totals.push(taken.iter().sum::<Duration>());
        stages.iter_mut().zip(taken).for_each(|(all, one)| all.push(one));
        run.progress.step();
    }
    totals.sort_unstable();
    stages.iter_mut().for_each(|all| all.sort_unstable());
    let bar = BAR_10K * args.pods.max(10_000) as f64 / 10_000.0;
    let sizes = format!("{} {} {}", args.pods, driver.machines(), driver.needs());
    let mut grades = vec![
        told("pods, machines on offer, needs", sizes),
        told("machines bought", driver.counts().provision.to_string()),
        told("needs that stay short", driver.short().to_string()),
        at_most("p50 of the whole path, ms", quantile_ms(&totals, 50), bar),
        told("p99 of the whole path, ms", format!("{:.1}", quantile_ms(&totals, 99))),
    ];
    let medians = STAGES.iter().zip(&stages);
    grades.extend(medians.map(|(what, all)| told(what, format!("{:.1}", quantile_ms(all, 50)))));
    Ok(grades)
}

/// Once through all of it, in a cluster that had no demand.
fn path(name: &'static str, driver: &mut Driver, pods: &[Whole]) -> Result<Stages, Error> {
    let cluster = ClusterId::from(CLUSTER);
    driver.replace(&cluster, &[]);
    driver.cycle(Pass::Incremental);

    let (requests, asked) = timed(|| requests(pods).collect::<Vec<_>>());
    let (frame, rolled_up) = timed(|| frame(&requests));
    let (needs, gated) = timed(|| gate(name, &cluster, &frame));
    let needs = needs?;
    let ((), decided) = timed(|| {
        driver.replace(&cluster, &needs);
        driver.cycle(Pass::Incremental);
    });
    assert!(driver.counts().provision > 0, "nothing was decided");
    Ok([asked, rolled_up, gated, decided])
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let made = black_box(work());
    (made, begun.elapsed())
}

/// As the pod controller does when it sees each pod for the first time.
fn requests(
    pods: impl IntoIterator<Item = impl Borrow<Whole>>,
) -> impl Iterator<Item = CapacityRequest> {
    let (settings, now) = (Settings::default(), Timestamp::UNIX_EPOCH);
    pods.into_iter().filter_map(move |whole| {
        let context = Context {
            settings: &settings,
            now,
            unmanaged: false,
            group_topology: None,
            volumes: &[],
            existing: &[],
        };
        match desired(&Pod::of(whole.borrow()), &context).step {
            Step::Create(request) => Some(*request),
            _ => None,
        }
    })
}

/// As the operator does when its first list is complete.
fn frame(requests: &[CapacityRequest]) -> Vec<u8> {
    let (projector, mut fold) = (Projector::default(), Fold::new(CLUSTER));
    requests.iter().for_each(|request| fold.add(&projector.project(request)));
    let roll_up = fold.build(1);
    let mut frame = Vec::with_capacity(roll_up.encoded_len());
    roll_up.encode(&mut frame);
    frame
}

/// As the shard does with a frame of its operator.
fn gate(name: &'static str, cluster: &ClusterId, frame: &[u8]) -> Result<Vec<Need>, Error> {
    let payload = wire::OperatorMessage::decode(frame).map(|message| message.payload);
    let Ok(Some(Payload::Rollup(message))) = payload else {
        panic!("the operator's frame is no roll-up");
    };
    match demand::roll_up(cluster, message) {
        Ok(taken) => Ok(taken.needs),
        Err(refusal) => Err(Error::BadScenario { scenario: name, refusal }),
    }
}
