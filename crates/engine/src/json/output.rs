//! The canonical form of what a cycle decided.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_model::{MachineId, Stamp, Totals};
use serde_json::{Map, Number, Value, json};

use crate::{
    action::{Action, ActionKind},
    input::NeedKey,
    output::{CycleOutput, Detail, NeedIdx, Outcome, Reason, Verdict},
};

pub(super) fn form(output: &CycleOutput, explain: bool) -> Value {
    let by_machine = |of: &BTreeMap<MachineId, NeedIdx>| -> BTreeMap<String, u32> {
        of.iter().map(|(machine, need)| (machine.as_str().to_owned(), need.0)).collect()
    };
    let gang_ages: Vec<Value> = output
        .gang_ages
        .iter()
        .map(|(key, age)| {
            json!({
                "cluster": key.cluster.as_str(),
                "group": key.group.as_str(),
                "fingerprint": key.fingerprint.as_str(),
                "age": age,
            })
        })
        .collect();
    let unresolved: Vec<Value> = output
        .unresolved
        .iter()
        .map(|entry| {
            json!({
                "need": entry.need.0,
                "deficit": amounts(&entry.deficit),
                "preempted": entry.preempted,
            })
        })
        .collect();
    json!({
        "verdicts": output.verdicts.iter().map(verdict).collect::<Vec<_>>(),
        "claims": by_machine(&output.claims),
        "outgrown": by_machine(&output.outgrown),
        "actions": output.actions.iter().map(|one| action(one, explain)).collect::<Vec<_>>(),
        "unresolved": unresolved,
        "gang_ages": gang_ages,
    })
}

fn verdict(verdict: &Verdict) -> Value {
    json!({
        "cluster": verdict.cluster.as_str(),
        "fingerprint": verdict.fingerprint.as_str(),
        "group": verdict.group.as_str(),
        "aggregate": amounts(&verdict.aggregate),
        "min_unit": amounts(&verdict.min_unit),
        "folded": verdict.folded,
        "satisfied": verdict.satisfied,
        "deficit": amounts(&verdict.deficit),
        "claimed": verdict.claimed,
        "bootstrap": verdict.bootstrap,
        "provision": verdict.provision,
        "domain": verdict.domain,
        "satisfiable": verdict.satisfiable,
        "parked": verdict.parked,
        "matching_supply_exists": verdict.matching_supply_exists,
        "gang_age": verdict.gang_age,
        "outcome": match verdict.outcome {
            Outcome::Unsatisfied => "unsatisfied",
            Outcome::AbsorbedBySupply => "absorbed_by_supply",
            Outcome::EmittedIdle => "emitted_idle",
            Outcome::EmittedSpec => "emitted_spec",
        },
        "reason": match verdict.reason {
            None => "",
            Some(Reason::PriorityStarved) => "PRIORITY_STARVED",
            Some(Reason::NoMatchingSupply) => "NO_MATCHING_SUPPLY",
            Some(Reason::TopologyUnsatisfiable) => "TOPOLOGY_UNSATISFIABLE",
            Some(Reason::PreemptionExhausted) => "PREEMPTION_EXHAUSTED",
        },
        "detail": match verdict.detail {
            None => "",
            Some(Detail::NoSession) => "NO_SESSION",
            Some(Detail::BootstrapRefused) => "BOOTSTRAP_REFUSED",
            Some(Detail::SpreadUnsatisfiable) => "SPREAD_UNSATISFIABLE",
            Some(Detail::ProviderFailing) => "PROVIDER_FAILING",
            Some(Detail::QuotaExhausted) => "QUOTA_EXHAUSTED",
            Some(Detail::PreemptionUnderWay) => "PREEMPTION_UNDER_WAY",
        },
    })
}

fn action(action: &Action, explain: bool) -> Value {
    let mut form = Map::new();
    let mut put = |name: &str, value: Value| drop(form.insert(name.to_owned(), value));
    put("kind", action.kind.name().into());
    put("machine", action.machine.as_str().into());
    put("cluster", action.kind.cluster().map_or("", |cluster| cluster.as_str()).into());
    put("reason", action.kind.reason().into());
    put("cost", dollars(action.cost));
    put("runner_up_cost", action.runner_up_cost.map_or(Value::Null, dollars));
    match &action.kind {
        ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition) => {
            put("need", acquisition.need.0.into());
            put("stamp", stamp(&acquisition.stamp));
            if explain {
                put("explain", json!({"domain_rule": action.domain_rule}));
            }
        }
        ActionKind::Preempt { grace, preemptor_priority, preemptor, need, .. } => {
            put("need", need.0.into());
            put("grace_seconds", seconds(*grace));
            put("preemptor_priority", (*preemptor_priority).into());
            put("for", key(preemptor));
        }
        ActionKind::Reclaim { grace, .. } => put("grace_seconds", seconds(*grace)),
        ActionKind::Delete => {}
    }
    Value::Object(form)
}

fn stamp(stamp: &Stamp) -> Value {
    json!({
        "priority": stamp.priority,
        "interruption_dollars": dollars(stamp.interruption),
        "reclamation_dollars": dollars(stamp.reclamation),
        "fingerprint": stamp.fingerprint.as_str(),
        "group": stamp.group.as_str(),
        "for_cluster": stamp.for_cluster.as_deref().unwrap_or_default(),
    })
}

fn key(key: &NeedKey) -> Value {
    json!({
        "cluster": key.cluster.as_str(),
        "fingerprint": key.fingerprint.as_str(),
        "group": key.group.as_str(),
    })
}

/// Whole units as an integer, else milli-units; zero dimensions are left out.
fn amounts(totals: &Totals) -> Value {
    let text = |millis: i128| {
        if millis % 1000 == 0 { (millis / 1000).to_string() } else { format!("{millis}m") }
    };
    let pairs = totals.by_name().into_iter();
    Value::Object(pairs.map(|(name, millis)| (name.to_owned(), text(millis).into())).collect())
}

fn seconds(duration: Duration) -> Value {
    dollars(duration.as_secs_f64())
}

/// Shortest form that reads back, whole values without a fraction.
fn dollars(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value == f64::INFINITY {
        "+Inf".into()
    } else if value.fract() == 0.0 && value.abs() < EXACT {
        (value as i64).into()
    } else {
        Number::from_f64(value).map_or(Value::Null, Value::Number)
    }
}
