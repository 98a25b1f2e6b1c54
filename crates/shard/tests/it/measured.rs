//! Every metric of §18 moves when what it measures happens.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_model::MachineState;
use bigfleet_net::tls::Security;
use bigfleet_provider::{
    RefusedRecord,
    fake::{Fake, FakeOptions, Seed},
};
use bigfleet_scripted::{
    cluster::Shape,
    operator::{Operator, OperatorOptions, Reclaim},
};
use bigfleet_shard::{Options, options::ActuationOptions};
use bigfleet_wire::v1alpha1::WatchSummaryRequest;

use crate::rig::{Rig, offer, pods, pods_of, slow};

const GI: i64 = 1 << 30;

/// What stays at 0 here, and who moves it.
const ELSEWHERE: [&str; 14] = [
    // There is no commit broker.
    "phase1_occ_proposals_total",
    "phase1_occ_displacements_total",
    "phase1_occ_retries_exhausted_total",
    // The engine knows what is pending, so that two decisions do not meet.
    "actions_deduped_total",
    // Proved by tests of their own.
    "fenced",
    "session_identity_rejected_total",
    "observe_dropped_total",
    "coordinator_reports_total",
    "fence_false_alarms_total",
    "audit_dropped_total",
    "audit_errors_total",
    // Of a provider that others use, too: `shared` in the tests of shard-report.
    "holdings",
    "holdings_age_seconds",
    "machines_without_owner",
];

/// Families of which some sample has not been 0.
#[derive(Default)]
struct Moved(BTreeSet<String>);

impl Moved {
    fn look(&mut self, rig: &Rig) {
        let text = rig.scrape();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        for (name, value) in samples.filter_map(|line| line.rsplit_once(' ')) {
            let name = name.split('{').next().unwrap_or(name);
            // The count of a histogram stands for it.
            let name = name.strip_suffix("_count").unwrap_or(name);
            if value.parse::<f64>().is_ok_and(|value| value != 0.0) {
                self.0.insert(name.trim_start_matches("bigfleet_shard_").to_owned());
            }
        }
    }

    /// Looks ten times a second.
    async fn watch(&mut self, rig: &Rig, seconds: u64) {
        for _ in 0..10 * seconds {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.look(rig);
        }
    }
}

/// A machine's life, with a queue that is too small and somebody who watches.
async fn life(moved: &mut Moved) {
    let options = Options {
        execute_concurrency: 1,
        provider_max_inflight: 1,
        max_actions_per_cycle: Some(20),
        reclaim_cap_fraction: Some(0.05),
        ..Options::default()
    };
    let seed = Seed { idle: 100, speculative: 150, ..Seed::default() };
    let rig = Rig::start(options, slow(), &seed).await;
    let mut observe = rig.observe().await;
    let _watch = observe.watch_summary(WatchSummaryRequest {}).await.expect("a stream");
    let operator = rig.operator("c").await;
    operator.on_reclaim(|_| Reclaim::Silent);
    operator.roll_up(pods("c", 30, 32_000)).await.expect("accepted");
    moved.watch(&rig, 60).await;
    rig.until("served", |rig| rig.count(MachineState::Configured) >= 30).await;
    let lost = rig.fake.random(MachineState::Configured).expect("one serves");
    rig.fake.fail_machine(&lost, "interrupted");
    operator.roll_up(vec![]).await.expect("accepted");
    moved.watch(&rig, 30).await;
    rig.until("released", |rig| rig.metrics.idle_releases.get() > 0).await;
    moved.look(&rig);
    rig.stop().await;
}

/// Demand before supply, and an operator that does not read.
async fn wait(moved: &mut Moved) {
    let fake = Fake::new(slow());
    let rig = Rig::over(Options::default(), fake.clone(), 1).await;
    let operator = rig.operator("c").await;
    let shape = Shape::new(4000, GI).priority(1000);
    operator.roll_up(pods_of("c", 1, &shape)).await.expect("accepted");
    moved.watch(&rig, 30).await;
    fake.add_speculative("m-1", &offer("big", "z1", 4)).expect("let in");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    moved.watch(&rig, 15).await;
    let waited = "bigfleet_shard_need_wait_seconds_count{priority_class=\"service\"}";
    assert_eq!(rig.sample(waited), 1.0);
    let latency = rig.sample("bigfleet_shard_provisioning_latency_seconds_sum");
    assert_eq!(rig.sample("bigfleet_shard_provisioning_latency_seconds_count"), 1.0);
    assert!(
        (90.0..120.0).contains(&latency),
        "30 s without supply, a Create, a Configure: {latency}"
    );
    rig.stop().await;

    let rig = Rig::start(Options::default(), slow(), &Seed { idle: 300, ..Seed::default() }).await;
    let options = OperatorOptions::new("c").window(1);
    let operator = Operator::connect(&rig.addr, &Security::Plaintext, options).await;
    let operator = operator.expect("a session");
    operator.roll_up(pods("c", 20, 32_000)).await.expect("accepted");
    operator.stall();
    moved.watch(&rig, 25).await;
    rig.stop().await;
}

/// What is wrong with what others say.
async fn lies(moved: &mut Moved) {
    let options = Options { empty_rollup_guard: true, ..Options::default() };
    let rig = Rig::start(options, slow(), &Seed { idle: 100, ..Seed::default() }).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 15, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 15).await;
    rig.pass(30).await;
    operator.roll_up(vec![]).await.expect("held");
    let mut bad = pods("c", 1, 1000);
    bad[0].priority = 1;
    bad[0].interruption_penalty_bucket = 99;
    operator.roll_up(bad).await.expect("rejected");
    moved.look(&rig);
    rig.knobs().lie = Some(Box::new(|list| {
        if let Some(machine) = list.machines.first() {
            let mut message = bigfleet_wire::v1alpha1::Machine::from(machine);
            message.price_per_hour = f64::NAN;
            let why = bigfleet_model::gate::inventory::machine(message).expect_err("refused");
            list.refused.push(RefusedRecord { id: machine.id.to_string(), why });
        }
        list.machines.clear();
    }));
    moved.watch(&rig, 25).await;
    rig.stop().await;
}

/// The brakes.
async fn braked(moved: &mut Moved) {
    for actuation in [
        ActuationOptions { paused: true, ..ActuationOptions::default() },
        ActuationOptions { dry_run: true, ..ActuationOptions::default() },
    ] {
        let options = Options { actuation, ..Options::default() };
        let rig = Rig::start(options, slow(), &Seed { idle: 20, ..Seed::default() }).await;
        let operator = rig.operator("c").await;
        operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
        moved.watch(&rig, 15).await;
        rig.stop().await;
    }
}

/// A machine that never arrives.
async fn stuck(moved: &mut Moved) {
    let seed = Seed { speculative: 9, ..Seed::default() };
    let rig = Rig::start(Options::default(), FakeOptions::default(), &seed).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.pass(1830).await;
    moved.look(&rig);
    let series = "bigfleet_shard_machines_stuck{state=\"creating\"}";
    assert_eq!(rig.sample(series), 1.0);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_metric_moves() {
    let mut moved = Moved::default();
    life(&mut moved).await;
    wait(&mut moved).await;
    lies(&mut moved).await;
    braked(&mut moved).await;
    stuck(&mut moved).await;
    let all = include_str!("../metrics.txt").lines();
    let all = all.filter_map(|line| line.split_whitespace().next());
    let all = all.filter(|name| !name.starts_with('#') && !ELSEWHERE.contains(name));
    let still: Vec<&str> = all.filter(|name| !moved.0.contains(*name)).collect();
    assert!(still.is_empty(), "nothing moved {still:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_cycles_are_not_measured_if_so_asked() {
    let options = Options { metrics_warmup_cycles: 5, ..Options::default() };
    let rig = Rig::start(options, slow(), &Seed { idle: 5, ..Seed::default() }).await;
    rig.pass(35).await;
    let count = "bigfleet_shard_cycle_duration_seconds_count";
    assert_eq!(rig.sample(count), 0.0);
    rig.pass(60).await;
    assert!(rig.sample(count) > 0.0);
    let phases = rig.sample("bigfleet_shard_cycle_phase_duration_seconds_count{phase=\"emit\"}");
    assert_eq!(phases, rig.sample(count));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn gauges_agree_with_the_fleet() {
    let seed = Seed { idle: 20, speculative: 10, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &seed).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 3, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 3).await;
    rig.pass(30).await;
    let text = rig.scrape();
    let sum = |family: &str, label: &str| -> f64 {
        let lines = text.lines().filter(|line| line.starts_with(&format!("{family}{{")));
        let lines = lines.filter(|line| line.contains(label));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let inventory = "bigfleet_shard_inventory_machines";
    for (state, count) in [("configured", 3.0), ("idle", 17.0), ("speculative", 10.0)] {
        assert_eq!(sum(inventory, &format!("state=\"{state}\"")), count, "{state}");
    }
    assert_eq!(sum(inventory, ""), 30.0, "what drained is 0");
    assert_eq!(sum("bigfleet_shard_demand_machines", ""), 1.0, "rows, not machines");
    assert!(rig.metrics.last_reconcile_age.get() < 11.0);
    assert!(sum("bigfleet_shard_rollup_age_seconds", "cluster=\"c\"") > 20.0);
    rig.stop().await;
}
