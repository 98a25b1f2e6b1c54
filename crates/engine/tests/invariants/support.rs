//! Small worlds, and pictures of the cycle after.

use std::{collections::BTreeMap, ops::Range};

use bigfleet_engine::{CycleInput, CycleOutput, Engine, NeedKey, Time, Tracked, Verdict};
use bigfleet_model::{
    CapacityType, MachineId, MachineState, Need, Operator, PenaltyBucket, Profile,
    WhenUnsatisfiable,
    gate::{demand, inventory},
};
use bigfleet_oracle::worlds;
use bigfleet_wire::v1alpha1 as wire;

use crate::common;

pub(crate) const RACK: &str = "rack";

/// Worlds per test, of which there are many: at least so many each.
pub(crate) fn seeds(worlds: u64) -> Range<u64> {
    0..worlds.max(common::seeds(worlds, 10).end)
}

/// An idle machine on demand, of so many cores.
pub(crate) fn idle(id: &str, cores: u64, rack: &str, price: f64, probability: f64) -> Tracked {
    let message = wire::Machine {
        id: id.to_owned(),
        state: MachineState::Idle.to_wire(),
        host: Some(wire::HostRef { provider: "p".to_owned(), r#ref: id.to_owned() }),
        capacity_type: CapacityType::OnDemand.to_wire(),
        price_per_hour: price,
        interruption_probability: probability,
        resources: Some(wire::Resources {
            resources: [("cpu".to_owned(), cores.to_string())].into(),
        }),
        labels: [(RACK.to_owned(), rack.to_owned())].into(),
        ..wire::Machine::default()
    };
    let machine = inventory::machine(message).expect("a legal machine").machine;
    Tracked { machine, idle_since: None, drain: None }
}

/// What makes a need choosy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Spread,
    Gang,
}

pub(crate) fn need(cluster: &str, class: Class, cores: u64, unit: u64, bucket: i32) -> Need {
    let of = |cores: u64| [("cpu".to_owned(), cores.to_string())].into_iter().collect();
    let same = wire::NodeSelectorRequirement {
        key: RACK.to_owned(),
        operator: Operator::Same.to_wire(),
        values: Vec::new(),
    };
    let spread = wire::TopologySpread {
        topology_key: RACK.to_owned(),
        max_skew: 1,
        when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule.to_wire(),
    };
    let message = wire::CapacityNeed {
        requirements: (class == Class::Gang).then_some(same).into_iter().collect(),
        spread: (class == Class::Spread).then_some(spread).into_iter().collect(),
        aggregate_resources: of(cores),
        min_unit: of(unit),
        priority: 1000,
        interruption_penalty_bucket: bucket,
        group: if class == Class::Gang { cluster.to_owned() } else { String::new() },
        ..wire::CapacityNeed::default()
    };
    demand::need(&cluster.into(), 1, message).expect("a legal need")
}

pub(crate) fn start(snapshot: Vec<Tracked>, demand: Vec<Need>) -> CycleInput {
    let ready = demand.iter().map(|need| need.cluster.clone()).collect();
    CycleInput { snapshot, demand, ready, now: Time(1_000_000), ..CycleInput::default() }
}

/// A profile with another priority or spread.
pub(crate) fn profile(
    old: &Profile,
    priority: i32,
    spread: Vec<bigfleet_model::TopologySpread>,
) -> Profile {
    let penalties: (PenaltyBucket, PenaltyBucket) = (old.interruption(), old.reclamation());
    Profile::new(old.requirements().to_vec(), spread, priority, penalties.0, penalties.1)
}

/// The world of a seed one cycle later: stamps follow its claims.
pub(crate) fn restamped(seed: u64) -> CycleInput {
    let input = worlds::world(seed);
    let mut engine = Engine::load(&input);
    engine.cycle(input.now);
    engine.restamp();
    CycleInput { now: input.now, ..engine.input() }
}

pub(crate) fn key(verdict: &Verdict) -> NeedKey {
    NeedKey {
        cluster: verdict.cluster.clone(),
        fingerprint: verdict.fingerprint.clone(),
        group: verdict.group.clone(),
    }
}

/// Every prepared need with what it claims, in the order of the verdicts.
pub(crate) fn claims(output: &CycleOutput) -> Vec<(NeedKey, &Verdict, Vec<MachineId>)> {
    let mut claims: BTreeMap<usize, Vec<MachineId>> = BTreeMap::new();
    for (machine, need) in &output.claims {
        claims.entry(need.0 as usize).or_default().push(machine.clone());
    }
    let of = |(at, verdict)| (key(verdict), verdict, claims.remove(&at).unwrap_or_default());
    output.verdicts.iter().enumerate().map(of).collect()
}

/// Priority and penalties, of which the fingerprint's text tells.
pub(crate) fn precedence(key: &NeedKey) -> [i64; 3] {
    let text = key.fingerprint.to_string();
    ["p=", "ipb=", "rpb="].map(|name| {
        let part = text.split('|').find_map(|part| part.strip_prefix(name));
        part.expect("a part of a fingerprint").parse().expect("a number")
    })
}
