//! Who could be drained for a need, the best victim first (§7 step 3).

use std::{cmp::Ordering, collections::BinaryHeap};

use bigfleet_model::MachineState;
use smallvec::SmallVec;

use super::{score::victim_score, standing::Worth};
use crate::{
    handle::{MachineIx, PreparedIx, RunIx},
    input::Phase2Options,
    world::World,
};

/// Machines of one run with one claimant: of equal worth, in id order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    score: f64,
    run: RunIx,
    claimant: Option<PreparedIx>,
    /// Place in the run and label of the next machine.
    at: u32,
    label: u64,
    /// Stands for that machine only; those after it are in the heap already.
    alone: bool,
}

impl Ord for Segment {
    /// The best victim is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.label.cmp(&self.label))
    }
}

impl PartialOrd for Segment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Segment {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Segment {}

/// A pool's machines of lower priority than one preemptor's, best first. What is
/// taken is gone for good; what one need passes over stays for the next.
pub(super) struct Victims {
    heap: BinaryHeap<Segment>,
    passed: Vec<Segment>,
}

impl Victims {
    /// Of the machines that the need can use, below its priority.
    pub(super) fn of(world: &World, need: PreparedIx, options: &Phase2Options) -> Self {
        let priority = world.priority(need);
        let row = &world.needs[need];
        let mut heap = BinaryHeap::new();
        for &class in &world.pools[row.pool].classes {
            if !world.usable(row, class) {
                continue;
            }
            for &run in &world.classes[class].bound {
                for claimant in claimants(world, run, priority) {
                    let worth = Worth::of(world, run, claimant);
                    if worth.priority >= Some(priority) {
                        continue;
                    }
                    let gap = bigfleet_model::grace::priority_gap(priority, worth.priority);
                    let score = victim_score(options, gap, worth.interruption, worth.reclamation);
                    let segment = Segment { score, run, claimant, at: 0, label: 0, alone: false };
                    heap.extend(segment.forward(world));
                }
            }
        }
        Self { heap, passed: Vec::new() }
    }

    /// The next machine. What it comes to is told with [`Self::pass`], or it is
    /// gone.
    pub(super) fn next(&mut self, world: &World) -> Option<(MachineIx, Segment)> {
        let segment = self.heap.pop()?;
        let machine = world.runs[segment.run].members[segment.at as usize];
        if !segment.alone {
            self.heap.extend(Segment { at: segment.at + 1, ..segment }.forward(world));
        }
        Some((machine, segment))
    }

    /// This need does not take it; others may.
    pub(super) fn pass(&mut self, segment: Segment) {
        self.passed.push(Segment { alone: true, ..segment });
    }

    /// Before the next need looks.
    pub(super) fn rewind(&mut self) {
        self.heap.extend(self.passed.drain(..));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Every machine, in no order that means anything.
    pub(super) fn all(&self, world: &World, mut each: impl FnMut(MachineIx)) {
        for segment in &self.heap {
            let mut at = Some(*segment);
            while let Some(segment) = at {
                each(world.runs[segment.run].members[segment.at as usize]);
                at = Segment { at: segment.at + 1, ..segment }
                    .forward(world)
                    .filter(|_| !segment.alone);
            }
        }
    }
}

impl Segment {
    /// At its next machine with its claimant, Configured.
    fn forward(mut self, world: &World) -> Option<Self> {
        let members = &world.runs[self.run].members;
        while let Some(machine) = members.get(self.at as usize) {
            let row = &world.machines.rows[*machine];
            if row.claimant == self.claimant && row.state == MachineState::Configured {
                self.label = row.label;
                return Some(self);
            }
            self.at += 1;
        }
        None
    }
}

/// Who counts on machines of a run; none where their priority is unknown, not
/// low: without any stamp, in a cluster that has not reported.
fn claimants(world: &World, run: RunIx, below: i32) -> SmallVec<[Option<PreparedIx>; 2]> {
    let row = &world.runs[run];
    let ready = row.cluster.is_some_and(|cluster| world.names.clusters[cluster].ready);
    let mut found: SmallVec<[Option<PreparedIx>; 2]> = SmallVec::new();
    if row.stamp.is_none() && !ready {
        return found;
    }
    // An owner takes from the front: if the last machine is its own, all are.
    if let Some(owner) = row.account.and_then(|account| world.owner(account))
        && let Some(last) = row.members.last()
        && let Some(claimant) = world.machines.rows[*last].claimant
        && (claimant == owner || world.needs[owner].folded_into == Some(claimant))
        && world.priority(owner) >= below
    {
        return found;
    }
    let mut last = None;
    for member in &row.members {
        let claimant = world.machines.rows[*member].claimant;
        if last != Some(claimant) && !found.contains(&claimant) {
            found.push(claimant);
        }
        last = Some(claimant);
    }
    found
}
