//! Screens as text.

use bigfleet_wire::v1alpha1::{
    AheadNeed, CapacityNeed, CycleSummary, DecisionRecord, DomainCoverage, ExplainNeedResponse,
    MachineCount, NeedView, NodeSelectorRequirement, PreemptionSummary, Resources, SupplyFunnel,
};
use bigfleetctl::command::{
    explain,
    raft::ReplicaRow,
    status::{self, ReportState, ShardState, ShortfallState, Status},
    top::{self, Event, Model},
};

use crate::rig::{SECOND, leader_status};

const NOW: i64 = 1_700_000_000 * SECOND;

fn text(value: &str) -> String {
    value.to_owned()
}

fn healthy() -> Status {
    let replica = |address: &str, node: &str, role: &str| ReplicaRow {
        address: text(address),
        node: text(node),
        role: text(role),
        leader: text("node-1"),
        ..leader_status("node-1").into()
    };
    let shard = |id: &str| ShardState {
        shard: text(id),
        address: format!("{id}.fleet:7780"),
        heartbeat_unix_nanos: NOW - 4 * SECOND,
        mode: Some(text("ACTIVE")),
        report: Some(ReportState { cycle: 900, machines: 25_000, free: 310, ..Default::default() }),
        ..Default::default()
    };
    Status {
        now: NOW,
        context: Some(text("prod")),
        replicas: vec![
            replica("c-0:7790", "node-1", "leader"),
            replica("c-1:7790", "node-2", "follower"),
            replica("c-2:7790", "node-3", "follower"),
        ],
        shards: vec![shard("shard-0"), shard("shard-1")],
        certificate_expires: Some(NOW / SECOND + 30 * 86_400),
        ..Default::default()
    }
}

#[test]
fn status_of_a_healthy_fleet() {
    let mut status = healthy();
    status.alerts = status::alerts(&status);
    insta::assert_snapshot!(status::screen(&status));
}

#[test]
fn status_of_a_fleet_in_trouble() {
    let mut status = healthy();
    status.plaintext = true;
    status.certificate_expires = Some(NOW / SECOND + 3 * 86_400);
    status.replicas[2] = ReplicaRow {
        address: text("c-2:7790"),
        error: Some(text("connection refused")),
        ..Default::default()
    };
    status.replicas[1].phase = text("superseded");
    let paused = &mut status.shards[0];
    paused.mode = Some(text("PAUSED"));
    paused.mode_since_unix_nanos = NOW - 2 * 3600 * SECOND;
    paused.mode_reason = text("incident 7");
    let late = &mut status.shards[1];
    late.heartbeat_unix_nanos = NOW - 400 * SECOND;
    late.mode = None;
    late.report = Some(ReportState { cycle: 3, machines: 9, free: 0, shortfalls: 2, escalated: 1 });
    let shortfall = |priority, age_cycles| ShortfallState {
        shard: text("shard-1"),
        priority,
        age_cycles,
        deficit: text("cpu=64 nvidia.com/gpu=8"),
        requirements: text("same topology.bigfleet/rack"),
    };
    status.shortfalls = vec![shortfall(1_000_000, 12), shortfall(100, 2)];
    status.missing = vec![text(
        "brake: shard shard-1 does not answer at shard-1.fleet:7780: connection refused",
    )];
    status.alerts = status::alerts(&status);
    insta::assert_snapshot!(status::screen(&status));
}

#[test]
fn status_without_a_leader() {
    let mut status = Status {
        now: NOW,
        missing: vec![text("list of shards: no coordinator leader reachable")],
        ..Default::default()
    };
    status.alerts = status::alerts(&status);
    insta::assert_snapshot!(status::screen(&status));
}

fn resources(pairs: &[(&str, &str)]) -> Resources {
    Resources { resources: pairs.iter().map(|(name, amount)| (text(name), text(amount))).collect() }
}

fn gang() -> ExplainNeedResponse {
    let same = NodeSelectorRequirement {
        key: text("topology.bigfleet/rack"),
        operator: 5,
        values: vec![],
    };
    let kind = NodeSelectorRequirement {
        key: text("node.kubernetes.io/instance-type"),
        operator: 1,
        values: vec![text("a3-highgpu-8g")],
    };
    let need = CapacityNeed {
        requirements: vec![kind, same],
        aggregate_resources: resources(&[("nvidia.com/gpu", "128")]).resources,
        min_unit: resources(&[("nvidia.com/gpu", "8")]).resources,
        priority: 1000,
        interruption_penalty_bucket: 17,
        reclamation_penalty_bucket: 27,
        group: text("topology.bigfleet/rack\0app=train,;\0ml"),
        ..Default::default()
    };
    let domain = |name: &str, coverage, satisfiable| DomainCoverage {
        domain: text(name),
        coverage_per_mille: coverage,
        satisfiable,
    };
    let view = NeedView {
        need: Some(need),
        cluster_id: text("ml-1"),
        arrival_unix_nanos: NOW - 600 * SECOND,
        profile_fingerprint: text("p=1000|ipb=17|rpb=27|reqs=…|spr="),
        residual_deficit: Some(resources(&[("nvidia.com/gpu", "32")])),
        acquisition_parked: true,
        parked_age_cycles: 3,
        age_cycles_unmet: 11,
        unmet_reason: 3,
        preemption: Some(PreemptionSummary {
            victims_found: 2,
            capacity_freed: Some(resources(&[("nvidia.com/gpu", "16")])),
        }),
        ..Default::default()
    };
    let record = DecisionRecord {
        sequence: 41,
        cycle: 90,
        time_unix_nanos: NOW - 60 * SECOND,
        kind: text("Bootstrap"),
        machine_id: text("gpu-3"),
        cluster_id: text("ml-1"),
        priority: 1000,
        reason: text("idle"),
        outcome: text("failed"),
        error: text("quota"),
        ..Default::default()
    };
    ExplainNeedResponse {
        cycle: 91,
        computed_at_unix_nanos: NOW - 2 * SECOND,
        need: Some(view),
        rank: 3,
        rank_of: 40,
        funnel: Some(SupplyFunnel {
            matching: 24,
            usable: 24,
            bound_elsewhere: 12,
            idle_free: 8,
            speculative_free: 4,
            ..Default::default()
        }),
        ahead: vec![AheadNeed {
            cluster_id: text("ml-2"),
            profile_fingerprint: text("p=2000|ipb=1|rpb=1|reqs=…|spr="),
            priority: 2000,
            machines_taken: 12,
            ..Default::default()
        }],
        domains: vec![domain("rack-7", 750, false), domain("rack-2", 500, false)],
        decisions: vec![record],
    }
}

#[test]
fn explain_of_a_gang_that_fits_nowhere() {
    insta::assert_snapshot!(explain::screen("shard-0", &gang(), NOW - 2 * SECOND, NOW));
}

#[test]
fn explain_of_a_finer_reason() {
    let mut explained = gang();
    let view = explained.need.as_mut().unwrap();
    view.unmet_reason = 1;
    view.unmet_detail = 3;
    view.detail_text = text("InsufficientInstanceCapacity in eu-1a");
    (explained.ahead, explained.domains, explained.decisions) = (vec![], vec![], vec![]);
    insta::assert_snapshot!(explain::screen("shard-0", &explained, NOW - 2 * SECOND, NOW));
}

#[test]
fn explain_of_a_satisfied_need() {
    let mut explained = gang();
    let view = explained.need.as_mut().unwrap();
    *view = NeedView {
        need: view.need.clone(),
        cluster_id: text("ml-1"),
        arrival_unix_nanos: NOW - 600 * SECOND,
        profile_fingerprint: view.profile_fingerprint.clone(),
        satisfied: true,
        claimed_machine_count: 16,
        bootstrap_count: 4,
        provision_count: 2,
        same_domain: text("rack-7"),
        ..Default::default()
    };
    explained.ahead.clear();
    insta::assert_snapshot!(explain::screen("shard-0", &explained, NOW - 2 * SECOND, NOW));
}

fn summary(cycle: i64) -> CycleSummary {
    let count = |state, capacity_type, count| MachineCount { state, capacity_type, count };
    let map = |pairs: &[(&str, i32)]| pairs.iter().map(|(name, n)| (text(name), *n)).collect();
    CycleSummary {
        cycle,
        computed_at_unix_nanos: NOW - 2 * SECOND,
        shard_epoch: 3,
        phase_micros: [("reconcile", 1200), ("phase1", 8000), ("phase2", 300), ("emit", 90)]
            .map(|(phase, micros)| (text(phase), micros))
            .into(),
        machines: vec![
            count(1, 3, 40),
            count(3, 1, 8),
            count(5, 1, 500),
            count(5, 4, 120),
            count(8, 4, 1),
        ],
        dollars_per_hour: [("on_demand".to_owned(), 12.5), ("spot".to_owned(), 36.0)].into(),
        actions: map(&[("Bootstrap", 4), ("Provision", 2)]),
        shortfalls: map(&[("batch", 3), ("critical", 1)]),
        sessions: 12,
        needs: 240,
        needs_unmet: 4,
        queue_depth: 1,
        last_reconcile_unix_nanos: NOW - 3 * SECOND,
        ..Default::default()
    }
}

fn watched() -> Model {
    let mut model = Model::new(true);
    for id in ["shard-0", "shard-1", "shard-2", "shard-3"] {
        model.apply(Event::Known(text(id), format!("{id}.fleet:7780")));
    }
    model.apply(Event::Now(NOW));
    model.apply(Event::Summary(text("shard-0"), Box::new(summary(900))));
    let paused = CycleSummary {
        actuation_paused: true,
        computed_at_unix_nanos: NOW - 90 * SECOND,
        ..summary(17)
    };
    model.apply(Event::Summary(text("shard-1"), Box::new(paused)));
    model.apply(Event::Lost(text("shard-2"), text("connection refused")));
    for (sequence, outcome) in [(41, "decided"), (42, "succeeded")] {
        let record = DecisionRecord {
            sequence,
            time_unix_nanos: NOW - SECOND,
            kind: text("Bootstrap"),
            machine_id: text("idle-3"),
            cluster_id: text("c-1"),
            priority: 1000,
            reason: text("idle"),
            outcome: text(outcome),
            ..Default::default()
        };
        model.apply(Event::Decision(text("shard-0"), Box::new(record)));
    }
    model
}

#[test]
fn top_of_a_fleet() {
    insta::assert_snapshot!(top::text(&watched(), 120, 36));
}

#[test]
fn top_of_a_lost_shard_on_a_small_terminal() {
    let mut model = watched();
    model.apply(Event::Down);
    model.apply(Event::Down);
    insta::assert_snapshot!(top::text(&model, 80, 24));
}

#[test]
fn top_counts_no_shard_that_is_silent() {
    let mut model = watched();
    model.apply(Event::Lost(text("shard-1"), text("connection refused")));
    model.known = 200;
    let head = |model: &Model| top::text(model, 120, 12).lines().next().unwrap().to_owned();
    assert!(head(&model).contains("1 of 200 shards  669 machines  $48.50/h"), "{}", head(&model));
    model.apply(Event::Lost(text("shard-0"), text("connection refused")));
    assert!(
        head(&model).contains("0 of 200 shards answer  — machines  $—/h declared  — needs unmet"),
        "{}",
        head(&model)
    );
}
