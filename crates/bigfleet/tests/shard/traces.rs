//! From a line of the audit log to the need, the cluster and what became of the machine
//! (experience chapter §10.3).

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_scripted::random::Random;
use bigfleet_shard::audit::Record;
use bigfleet_wire::v1alpha1::MachineState;

use crate::judge::{History, Sight};

/// Decisions that are traced.
const SAMPLE: usize = 1_000;

/// Each cluster with the fingerprints of what it asked for.
pub(crate) type Asked = BTreeSet<(String, String)>;

/// A random sample of decisions is traced to the end.
pub(crate) fn traced(seed: u64, records: &[Record], asked: &Asked, history: &History) {
    let mut decisions: Vec<&Record> = decided(records).collect();
    let mut random = Random::new(seed);
    let all = decisions.len();
    for at in 0..all.min(SAMPLE) {
        let drawn = at + random.below((all - at) as u64) as usize;
        decisions.swap(at, drawn);
    }
    decisions.truncate(SAMPLE);
    let outcomes: BTreeMap<i64, &Record> =
        records.iter().filter_map(|record| Some((record.of?, record))).collect();
    let mut ended: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for decision in decisions {
        if decision.kind != "Delete" {
            let need = (decision.cluster.to_string(), need(records, decision));
            assert!(asked.contains(&need), "nobody asked for this: {decision:?}");
        }
        let outcome = outcomes.get(&decision.seq).map_or("of a process that died", |&outcome| {
            let sights = history.get(&*decision.machine.to_string()).map_or(&[][..], Vec::as_slice);
            let shown = sights.iter().any(|(at, sight)| {
                // It is looked at the provider in between, and not when it is down.
                *at >= decision.time && shows(decision, sight)
            });
            let succeeded = outcome.outcome == "success";
            assert!(!succeeded || shown, "never seen:\n{decision:?}\n{outcome:?}\n{sights:?}");
            &*outcome.outcome
        });
        *ended.entry((&decision.kind, outcome)).or_default() += 1;
    }
    println!("of {all} decisions, traced {ended:#?}");
}

/// The need that a decision is about. Whose machine is excess has lost its name with the
/// claim (engine chapter §1.7): the decision that bound it tells.
fn need(records: &[Record], decision: &Record) -> String {
    let bound = |record: &&Record| {
        record.kind == "Bootstrap"
            && record.machine == decision.machine
            && record.seq <= decision.seq
    };
    let named = Some(decision).filter(|decision| !decision.need.is_empty());
    let of = named.or_else(|| records.iter().rev().find(bound)).unwrap_or(decision);
    of.need.to_string()
}

/// Those that were carried out, and not withheld.
fn decided(records: &[Record]) -> impl Iterator<Item = &Record> {
    records.iter().filter(|record| record.of.is_none() && record.outcome == "decided")
}

/// Whether a machine that is seen so has had done to it what was decided.
fn shows(decision: &Record, sight: &Sight) -> bool {
    let bound = sight.cluster == *decision.cluster.to_string();
    match &*decision.kind {
        "Bootstrap" => bound && sight.state != MachineState::Idle,
        "Provision" => sight.state != MachineState::Speculative,
        "Delete" => matches!(sight.state, MachineState::Deleting | MachineState::Speculative),
        _ => !(bound && sight.state == MachineState::Configured),
    }
}
