//! One frame per cycle for whoever watches.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use bigfleet_engine::Census;
use bigfleet_wire::v1alpha1::{CycleSummary, MachineCount};
use tokio::sync::broadcast;

use super::Classes;
use crate::{
    actuation::Mode,
    cycle::{Laps, Summary},
    metrics::{PriorityClass, capacity_label},
    shard::Shard,
    views::{
        Counts,
        wire::{count, cycle_number},
    },
};

/// Frames that a watcher may be behind.
pub(crate) const MAX_BEHIND: usize = 10;

/// Where frames come from.
pub(crate) struct Summaries {
    latest: Mutex<Option<Arc<CycleSummary>>>,
    sender: broadcast::Sender<Arc<CycleSummary>>,
}

impl Summaries {
    pub(crate) fn new() -> Self {
        // One more than is tolerated, so that whoever loses a frame is ended.
        Self { latest: Mutex::default(), sender: broadcast::Sender::new(MAX_BEHIND + 1) }
    }

    pub(super) fn send(&self, frame: CycleSummary) {
        let frame = Arc::new(frame);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some(frame.clone());
        // Nobody need be watching.
        let _ = self.sender.send(frame);
    }

    /// The newest frame, if there is one, and all that follow.
    pub(crate) fn follow(
        &self,
    ) -> (Option<Arc<CycleSummary>>, broadcast::Receiver<Arc<CycleSummary>>) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        (latest.clone(), self.sender.subscribe())
    }
}

pub(super) fn frame(
    shard: &Shard,
    summary: &Summary,
    laps: &Laps,
    census: Option<&Census>,
    needs: &Counts,
    classes: &Classes,
) -> CycleSummary {
    let micros = |took: std::time::Duration| i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
    let phases = laps.taken.iter().map(|(phase, took)| (phase.label().to_owned(), micros(*took)));
    let emitted = summary.emitted.iter();
    let shortfalls = PriorityClass::ALL.iter().zip(classes);
    let mode = shard.actuation.mode();
    CycleSummary {
        cycle: cycle_number(summary.cycle),
        computed_at_unix_nanos: shard.clock.wall(),
        shard_epoch: shard.epoch,
        phase_micros: phases.collect(),
        machines: census.map(machines).unwrap_or_default(),
        dollars_per_hour: census.map(dollars).unwrap_or_default(),
        actions: emitted
            .map(|(kind, actions)| (kind.label().to_owned(), count(*actions)))
            .collect(),
        shortfalls: shortfalls
            .map(|(class, shortfalls)| (class.label().to_owned(), count(*shortfalls)))
            .collect(),
        sessions: count(shard.sessions.count()),
        needs: count(shard.needs_read.load().total()),
        needs_unmet: count(needs.unmet()),
        queue_depth: count(shard.queue.depth()),
        actuation_paused: mode == Mode::Paused,
        dry_run: mode == Mode::DryRun,
        fenced: shard.fence.is_latched(),
        last_reconcile_unix_nanos: shard.reconciler.last_good_wall(),
        last_decision_sequence: shard.audit.newest(),
    }
}

fn machines(census: &Census) -> Vec<MachineCount> {
    let mut counts = BTreeMap::<_, usize>::new();
    for ((state, capacity, _), of_cell) in &census.by_state {
        *counts.entry((*state, *capacity)).or_default() += of_cell.machines;
    }
    let machines = counts.into_iter().map(|((state, capacity), machines)| MachineCount {
        state: state.to_wire(),
        capacity_type: capacity.to_wire(),
        count: count(machines),
    });
    machines.collect()
}

fn dollars(census: &Census) -> BTreeMap<String, f64> {
    let mut dollars = BTreeMap::new();
    for ((_, capacity, _), of_cell) in census.by_state.iter().filter(|(_, one)| one.hosted > 0) {
        *dollars.entry(capacity_label(*capacity).to_owned()).or_default() += of_cell.price;
    }
    dollars
}
