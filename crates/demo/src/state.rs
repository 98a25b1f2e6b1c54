//! The fleet as the guide's page shows it.

use std::collections::BTreeMap;

use bigfleet_model::unmet;
use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState, NeedView};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cluster::{
        Cluster,
        workload::{Class, Workload},
    },
    eyes::{Decision, ShardSeen},
    scenario::{
        self,
        record::Verdict,
        stage::now,
        view::{View, state_name},
    },
    show::Show,
    supply::GPU,
};

/// Decisions that a new page gets.
const FEED: usize = 50;
/// A needs table older than this is amber.
const STALE_MS: i64 = 20_000;

const REAL: &[&str] = &[
    "the engine and every decision of it",
    "the processes: three coordinator replicas and two shards, killed with kill -9",
    "the protocol: gRPC over mTLS between all of them",
    "the operators and the pod controllers",
    "the providers' contract, as any provider serves it",
];
const SIMULATED: &[&str] = &[
    "the clouds, their prices and their latencies",
    "the kubelets: one pod fills a machine",
    "the pods: nothing runs in them",
];
/// What is the one with `--kubernetes` and the other without.
const CLUSTERS: &[&str] = &["the API servers", "the scheduler, which packs"];

/// Bars of the supply, in the order of their price.
const TIERS: [(&str, &str, CapacityType); 5] = [
    ("owned", "Owned bare metal", CapacityType::BareMetal),
    ("reserved", "Reserved", CapacityType::Reserved),
    ("spot", "Spot", CapacityType::Spot),
    ("ondemand", "On demand", CapacityType::OnDemand),
    ("gpu", "Owned, with GPUs", CapacityType::BareMetal),
];

/// What the fleet does not know of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Where the dashboard is.
    pub(crate) dashboard: Option<String>,
    /// When a visitor's session ends in any case, and when if nobody stirs; both by the wall
    /// clock. None at home.
    pub(crate) session: Option<(i64, i64)>,
}

/// What changes: the body of an event, and most of an answer.
pub(crate) fn state(show: &Show, sequence: u64, around: &Surroundings) -> Value {
    let view = View::of(&show.fleet);
    let run = show.run();
    let running = show.is_playing();
    json!({
        "sequence": sequence,
        "atUnixMs": now(),
        "demo": {
            "ready": true,
            "seed": show.seed,
            "kubernetes": show.fleet.is_real(),
            "hosted": around.session.is_some(),
            "plaintext": false,
            "startedInMs": show.started_in.as_millis() as u64,
            "upForMs": show.began.elapsed().as_millis() as u64,
            "residentBytes": show.fleet.resident_bytes(),
            "dashboardUrl": around.dashboard,
            "unitText": "one unit is one pod of 7.5 CPU and 28Gi: it fills a machine",
            "problem": show.problem(),
            "session": around.session.map(|(end, idle)| {
                json!({"endsAtUnixMs": end, "idleEndsAtUnixMs": idle})
            }),
        },
        "fleet": {"dollarsPerHour": view.dollars(), "tiers": TIERS.map(|tier| bar(&view, tier))},
        "workspaces": workspaces(show, &view),
        "coordinators": coordinators(show),
        "shards": shards(show, &view),
        "scenarios": scenario::all().iter().map(|it| row(show, it)).collect::<Vec<_>>(),
        "run": if running || !run.steps.is_empty() { json!(run) } else { Value::Null },
    })
}

/// What a page asks for once.
pub(crate) fn whole(show: &Show, sequence: u64, around: &Surroundings) -> Value {
    let mut state = state(show, sequence, around);
    let decisions = show.fleet.eyes.decisions();
    let newest: Vec<Told> = decisions.iter().rev().take(FEED).map(Told::of).collect();
    state["decisions"] = json!(newest);
    let (real, simulated): (&[&str], &[&str]) =
        if show.fleet.is_real() { (CLUSTERS, &[]) } else { (&[], CLUSTERS) };
    state["real"] = json!([REAL, real].concat());
    state["simulated"] = json!([SIMULATED, simulated].concat());
    state["tiers"] = json!(Class::ALL.map(|class| {
        json!({
            "tier": class.name(),
            "priority": class.priority(),
            "penaltyDollars": class.penalty(),
        })
    }));
    state
}

fn bar(view: &View, (tier, label, capacity): (&str, &str, CapacityType)) -> Value {
    let gpu = tier == "gpu";
    let mine = |machine: &&Machine| {
        machine.capacity_type() == capacity && (machine.instance_type == GPU) == gpu
    };
    let machines: Vec<&Machine> = view.all().filter(mine).collect();
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for number in 1..=8 {
        if let Ok(state) = MachineState::try_from(number) {
            states.insert(state_name(state), 0);
        }
    }
    for machine in &machines {
        *states.entry(state_name(machine.state())).or_default() += 1;
    }
    let prices = machines.iter().map(|machine| machine.price_per_hour);
    let exists = |machine: &&&Machine| machine.state() != MachineState::Speculative;
    let paid: f64 = machines.iter().filter(exists).map(|machine| machine.price_per_hour).sum();
    let from = prices.clone().fold(f64::INFINITY, f64::min);
    json!({
        "tier": tier,
        "label": label,
        "capacityType": name(capacity.as_str_name(), "CAPACITY_TYPE_"),
        "committed": matches!(capacity, CapacityType::BareMetal | CapacityType::Reserved),
        "priceFrom": if from.is_finite() { from } else { 0.0 },
        "priceTo": prices.fold(0.0, f64::max),
        "interruptionProbability":
            machines.iter().map(|it| it.interruption_probability).fold(0.0, f64::max),
        "dollarsPerHour": paid,
        "total": machines.len(),
        "states": states,
    })
}

fn workspaces(show: &Show, view: &View) -> Vec<Value> {
    let one = |(at, cluster): (usize, &Cluster)| {
        let serving = view.serving(at);
        let machines: Vec<&Machine> =
            view.all().filter(|machine| serving.contains(&machine.id)).collect();
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for capacity in [
            CapacityType::BareMetal,
            CapacityType::Reserved,
            CapacityType::OnDemand,
            CapacityType::Spot,
        ] {
            let count = machines.iter().filter(|it| it.capacity_type() == capacity).count();
            kinds.insert(name(capacity.as_str_name(), "CAPACITY_TYPE_"), count);
        }
        let seen = &view.shards[cluster.shard];
        let session = seen.sessions.iter().find(|it| it.cluster_id == cluster.name);
        let levels: BTreeMap<&str, u32> =
            Class::ALL.map(|class| (class.name(), cluster.wanted(Workload::Plain(class)))).into();
        let pods: BTreeMap<&str, Value> = view.pods[at]
            .iter()
            .map(|(workload, pods)| {
                let counts = json!({
                    "wanted": pods.wanted, "running": pods.running, "pending": pods.pending,
                });
                (workload.name(), counts)
            })
            .collect();
        json!({
            "id": cluster.id,
            "cluster": cluster.name,
            "shard": show.fleet.shards[cluster.shard].part.id,
            "label": format!("Cluster {}", cluster.id.to_uppercase()),
            "levels": levels,
            "pods": pods,
            "nodes": cluster.nodes(),
            "machines": kinds,
            "dollarsPerHour": machines.iter().map(|it| it.price_per_hour).sum::<f64>(),
            "connected": seen.answered.is_some() && session.is_some_and(|it| it.connected),
            "rollupsHeld": session.map_or(0, |it| it.rollups_held),
            "unmet": waiting(seen, &cluster.name),
        })
    };
    show.fleet.clusters.iter().enumerate().map(one).collect()
}

fn waiting(seen: &ShardSeen, cluster: &str) -> Vec<Value> {
    let mine = seen.needs.iter().filter(|need| need.cluster_id == cluster && !need.satisfied);
    let told = |view: &NeedView| {
        let need = view.need.as_ref();
        let priority = need.map_or(0, |need| need.priority);
        let class = Class::ALL.iter().find(|class| class.priority() == priority);
        let reason = name(view.unmet_reason().as_str_name(), "UNMET_REASON_");
        let detail = name(view.unmet_detail().as_str_name(), "UNMET_DETAIL_");
        let text = match view.detail_text.as_str() {
            // What it means; what to do about it is the dashboard's, behind a link.
            "" => unmet::of(view.unmet_reason, view.unmet_detail).action.split(';').next(),
            text => Some(text),
        };
        json!({
            "tier": class.map(|class| class.name()),
            "priority": priority,
            "reason": reason,
            "detail": if detail == "UNSPECIFIED" { "" } else { detail },
            "text": text,
            "fingerprint": view.profile_fingerprint,
            "group": need.map(|need| need.group.as_str()).unwrap_or_default(),
        })
    };
    mine.map(told).collect()
}

fn coordinators(show: &Show) -> Vec<Value> {
    let one = |(number, node): (usize, &crate::fleet::Node)| {
        let pid = node.part.pid();
        let seen = show.fleet.eyes.replica(number).filter(|_| pid.is_some());
        json!({
            "id": node.part.id,
            "running": pid.is_some(),
            "leader": seen.as_ref().is_some_and(|it| it.leader_id == node.part.id),
            "term": seen.as_ref().map_or(0, |it| it.term),
            "address": node.addr,
            "pid": pid,
        })
    };
    show.fleet.coordinators.iter().enumerate().map(one).collect()
}

fn shards(show: &Show, view: &View) -> Vec<Value> {
    let one = |(number, node): (usize, &crate::fleet::Node)| {
        let (pid, seen) = (node.part.pid(), &view.shards[number]);
        let summary = seen.summary.clone().unwrap_or_default();
        let computed = summary.computed_at_unix_nanos / 1_000_000;
        let mode = match (summary.actuation_paused, summary.dry_run) {
            (true, _) => "PAUSED",
            (_, true) => "DRY_RUN",
            _ => "ACTIVE",
        };
        json!({
            "id": node.part.id,
            "running": pid.is_some(),
            "address": node.addr,
            "pid": pid,
            "epoch": summary.shard_epoch,
            "cycle": summary.cycle,
            "computedAtUnixMs": computed,
            "stale": now() - computed > STALE_MS,
            "rebuilding": pid.is_some() && (seen.answered.is_none() || summary.cycle == 0),
            "mode": mode,
            "sessions": summary.sessions,
            "needs": summary.needs,
            "needsUnmet": summary.needs_unmet,
        })
    };
    show.fleet.shards.iter().enumerate().map(one).collect()
}

fn row(show: &Show, scenario: &scenario::Scenario) -> Value {
    let results = show.results(scenario.name);
    let run = show.run();
    let on = show.is_playing() && run.name == scenario.name && run.state == Verdict::Running;
    let state = match results.last {
        _ if on => "running",
        None => "idle",
        Some((Verdict::Passed, _)) => "passed",
        Some(_) => "failed",
    };
    json!({
        "name": scenario.name,
        "title": scenario.title,
        "action": scenario.action,
        "mustBeSeen": scenario.must_be_seen,
        "state": state,
        "passed": results.passed,
        "failed": results.failed,
        "lastMs": results.last.map(|(_, took)| took),
    })
}

/// The wire's name without its prefix.
fn name(full: &'static str, prefix: &str) -> &'static str {
    full.strip_prefix(prefix).unwrap_or(full)
}

/// A decision in plain words, with the engine's numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    shard: String,
    sequence: i64,
    cycle: i64,
    at_unix_ms: i64,
    kind: String,
    machine: String,
    cluster: String,
    priority: i32,
    preemptor_priority: i32,
    effective_cost: f64,
    runner_up_cost: f64,
    grace_seconds: i64,
    reason: String,
    outcome: String,
    error: String,
    of_sequence: i64,
    pub(crate) text: String,
}

impl Told {
    pub(crate) fn of(decision: &Decision) -> Self {
        let record = decision.record.clone();
        Self {
            shard: format!("shard-{}", decision.shard),
            sequence: record.sequence,
            cycle: record.cycle,
            at_unix_ms: record.time_unix_nanos / 1_000_000,
            text: words(&record),
            kind: record.kind,
            machine: record.machine_id,
            cluster: record.cluster_id,
            priority: record.priority,
            preemptor_priority: record.preemptor_priority,
            effective_cost: record.effective_cost,
            runner_up_cost: record.runner_up_cost,
            grace_seconds: record.grace_seconds,
            reason: record.reason,
            outcome: record.outcome,
            error: record.error,
            of_sequence: record.of_sequence,
        }
    }
}

fn words(record: &bigfleet_wire::v1alpha1::DecisionRecord) -> String {
    let (machine, cluster) = (&record.machine_id, &record.cluster_id);
    // Below zero there is none: what was bought for somebody is not priced again when it joins.
    let cost = match record.effective_cost {
        none if none < 0.0 => String::new(),
        cost => format!(", effective cost ${cost:.3}/h"),
    };
    let what = match record.kind.as_str() {
        "Bootstrap" => format!("{machine} joins {cluster}{cost}"),
        "Provision" => format!("{machine} is bought for {cluster}{cost}"),
        "Preempt" => format!(
            "{machine} is taken from {cluster} (priority {}) for priority {}, grace {} s",
            record.priority, record.preemptor_priority, record.grace_seconds
        ),
        "Reclaim" => {
            format!(
                "{machine} leaves {cluster}, which needs it no more, grace {} s",
                record.grace_seconds
            )
        }
        "Delete" => format!("{machine} is given back"),
        "SetActuation" => format!("actuation is {}: {}", record.outcome, record.reason),
        other => format!("{other} {machine} {cluster}"),
    };
    match record.outcome.as_str() {
        _ if record.kind == "SetActuation" => what,
        "decided" | "" => what,
        outcome if record.error.is_empty() => format!("{what}: {outcome}"),
        outcome => format!("{what}: {outcome}, {}", record.error),
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::DecisionRecord;

    use super::*;

    #[test]
    fn decisions_are_told_with_their_numbers() {
        let record = DecisionRecord {
            kind: "Preempt".to_owned(),
            machine_id: "alpha-spot-001".to_owned(),
            cluster_id: "cluster-a".to_owned(),
            priority: 100,
            preemptor_priority: 1_000_000,
            grace_seconds: 10,
            outcome: "decided".to_owned(),
            ..DecisionRecord::default()
        };
        let text = words(&record);
        for part in ["alpha-spot-001", "cluster-a", "priority 100)", "1000000", "10 s"] {
            assert!(text.contains(part), "{text}");
        }
        let failed = DecisionRecord {
            outcome: "provider_error".to_owned(),
            error: "no stock".to_owned(),
            ..record
        };
        assert!(words(&failed).ends_with("provider_error, no stock"));
        let joins = |effective_cost| {
            let kind = "Bootstrap".to_owned();
            words(&DecisionRecord { kind, effective_cost, ..failed.clone() })
        };
        assert!(joins(0.1).contains("joins cluster-a, effective cost $0.100/h"));
        assert!(joins(-1.0).starts_with("alpha-spot-001 joins cluster-a: "));
    }
}
