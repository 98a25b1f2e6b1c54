//! Scenario: full fleet, then critical.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_wire::v1alpha1::{DecisionRecord, MachineState::Configured};

use super::{
    demand::priority,
    record::Phase::{Act, Check, Precondition},
    stage::{Played, Stage},
    view::is_decided,
};
use crate::{
    cluster::workload::{Class, MOST, Workload},
    supply::SITES,
};

const A: usize = 0;
const B: usize = 1;
const BATCH: Workload = Workload::Plain(Class::Batch);
const PRODUCTION: Workload = Workload::Plain(Class::Production);
const CRITICAL: Workload = Workload::Plain(Class::Critical);

const PREEMPTS: &str = "batch, and nothing else, makes room";
const GRACE: &str = "grace follows the priority gap, over two gaps";
const KEPT: &str = "no production pod of the other cluster is moved";
const ONLY_BATCH: &str = "only batch is short";
pub(crate) const CLAIMS: &[&str] = &[PREEMPTS, GRACE, KEPT, ONLY_BATCH];

const PRODUCTION_UNITS: u32 = 4;
const CRITICAL_UNITS: u32 = 8;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let total = SITES[shard].general();
    stage.step(Precondition, "batch and production fill every machine of the shard");
    // Production comes first, and sits on what is cheapest: there the engine takes it to be when
    // it looks for machines that work for batch.
    for (cluster, workload) in [(A, BATCH), (B, BATCH), (B, PRODUCTION)] {
        stage.demand(cluster, workload, 0);
    }
    stage.until(|view| view.resting()).await?;
    stage.demand(A, PRODUCTION, total as u32 - MOST);
    stage.until(|view| view.resting()).await?;
    stage.demand(A, BATCH, MOST);
    stage
        .until(|view| match view.general(shard, Configured).len() {
            busy if busy == total => view.resting(),
            busy => Err(format!("{busy} of {total} work")),
        })
        .await?;
    let production = stage.fleet.clusters[A].running_of(PRODUCTION);
    let count = production.len();
    stage.guard(KEPT, move |_, fleet| {
        let gone = production.difference(&fleet.clusters[A].running_of(PRODUCTION)).count();
        (gone > 0).then(|| format!("{gone} of {count} pods are gone"))
    });
    stage.mark();
    // B has nothing of its own: its critical pods would be credited with that, and production
    // would be what asks for room.
    for (text, workload, units) in [
        ("B asks for 8 critical units", CRITICAL, CRITICAL_UNITS),
        ("B asks for 4 production units", PRODUCTION, PRODUCTION_UNITS),
    ] {
        stage.step(Act, text);
        stage.demand(B, workload, units);
        stage.step(Check, "all of B runs");
        stage.until(|view| view.all_run(B)).await?;
    }
    let preempts: Vec<DecisionRecord> = stage
        .decisions()
        .into_iter()
        .filter(|it| is_decided(it, "Preempt"))
        .map(|it| it.record)
        .collect();
    stage.claim(PREEMPTS, only_batch(&preempts), victims(&preempts));
    let (holds, detail) = by_gap(&preempts);
    stage.claim(GRACE, holds, detail);
    stage.step(Check, "only batch is short");
    stage
        .until(|view| {
            let unmet = view.unmet();
            let higher = unmet.iter().find(|it| priority(it) > Class::Batch.priority());
            match higher {
                Some(need) => Err(format!("{} lacks more than batch", need.cluster_id)),
                None if unmet.is_empty() => Err("nothing is short yet".to_owned()),
                None => Ok(()),
            }
        })
        .await?;
    stage.relieve(KEPT, format!("{count} pods, the same all the time"));
    let pods = stage.view().pods(A, BATCH);
    stage.claim(ONLY_BATCH, true, format!("{} batch pods wait in A", pods.pending));
    Ok(())
}

/// Whether there are victims, and all of them worked for batch.
fn only_batch(preempts: &[DecisionRecord]) -> bool {
    !preempts.is_empty() && preempts.iter().all(|it| it.priority == Class::Batch.priority())
}

fn victims(preempts: &[DecisionRecord]) -> String {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for it in preempts {
        *counts.entry(it.priority).or_default() += 1;
    }
    let texts = counts.iter().map(|(priority, count)| format!("{count} of priority {priority}"));
    texts.collect::<Vec<_>>().join(", ")
}

/// Whether every victim had the grace of its gap, and more than one gap was to be seen: one
/// grace for all would pass otherwise.
fn by_gap(preempts: &[DecisionRecord]) -> (bool, String) {
    let gap = |it: &DecisionRecord| i64::from(it.preemptor_priority) - i64::from(it.priority);
    let mut counts: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for it in preempts {
        *counts.entry((gap(it), it.grace_seconds)).or_default() += 1;
    }
    let texts = counts
        .iter()
        .map(|((gap, seconds), count)| format!("{count} with {seconds} s for a gap of {gap}"));
    let graces: BTreeSet<i64> = counts.keys().map(|(gap, _)| grace(*gap)).collect();
    let right = counts.keys().all(|(gap, seconds)| *seconds == grace(*gap));
    (right && graces.len() > 1, texts.collect::<Vec<_>>().join(", "))
}

/// Engine chapter §2.
const fn grace(gap: i64) -> i64 {
    match gap {
        900_001.. => 10,
        500_001.. => 30,
        100_001.. => 120,
        _ => 600,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preempt(preemptor_priority: i32, priority: i32, grace_seconds: i64) -> DecisionRecord {
        DecisionRecord { preemptor_priority, priority, grace_seconds, ..DecisionRecord::default() }
    }

    #[test]
    fn one_grace_for_all_fails_and_so_does_one_gap() {
        let (critical, production) = (preempt(1_000_000, 100, 10), preempt(100_000, 100, 600));
        assert!(by_gap(&[critical.clone(), production.clone()]).0);
        assert!(!by_gap(&[critical.clone(), preempt(100_000, 100, 10)]).0, "one grace for all");
        assert!(!by_gap(&[critical.clone(), critical]).0, "one gap");
        assert!(!by_gap(&[production, preempt(1_000_000, 100, 30)]).0);
        assert!(!by_gap(&[]).0);
    }

    #[test]
    fn only_batch_may_make_room() {
        let batch = preempt(1_000_000, 100, 10);
        assert!(only_batch(std::slice::from_ref(&batch)));
        assert!(!only_batch(&[batch, preempt(1_000_000, 100_000, 30)]));
        assert!(!only_batch(&[]));
    }

    #[test]
    fn graces_are_those_of_the_engine_chapter() {
        for (gap, seconds) in [
            (999_900, 10),
            (900_001, 10),
            (900_000, 30),
            (500_001, 30),
            (500_000, 120),
            (100_001, 120),
            (100_000, 600),
            (99_900, 600),
            (0, 600),
        ] {
            assert_eq!(grace(gap), seconds, "{gap}");
        }
    }
}
