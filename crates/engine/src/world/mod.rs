//! One cycle's input in dense form: indices instead of text.
//!
//! Clusters and machines are numbered in name order and needs in the order in
//! which they are served, so that comparing numbers compares what they stand for.

mod build;
mod class;
mod names;
mod overlay;
mod profile;
mod run;

use bigfleet_model::{Fingerprint, MachineState, Need, Stamp, Totals};

pub(crate) use build::build;
pub(crate) use class::ClassRow;
pub(crate) use profile::{DomainId, Profiles};
pub(crate) use run::{Run, RunKind};

use crate::input::{CycleInput, HeldBack, NoAcquire, Time};
use names::Names;

/// Identity of a need inside a cluster: (fingerprint, group), interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) u32);

/// A machine after the overlay of what is pending.
pub(crate) struct MachineRow<'a> {
    pub(crate) state: MachineState,
    pub(crate) class: usize,
    pub(crate) cluster: Option<usize>,
    pub(crate) stamp: Option<&'a Stamp>,
    /// Identity in the stamp.
    pub(crate) key: Option<Key>,
    /// Whose purchase a Creating machine is.
    pub(crate) for_cluster: Option<usize>,
    pub(crate) idle_since: Option<Time>,
    pub(crate) drain: DrainRow,
    pub(crate) held_back: Option<HeldBack>,
    /// Place in the input's snapshot.
    pub(crate) source: usize,
}

/// What is known of a drain.
#[derive(Clone, Copy, Default)]
pub(crate) struct DrainRow {
    pub(crate) deadline: Option<Time>,
    pub(crate) preemptor_priority: Option<i32>,
    pub(crate) preemptor: Option<(usize, Key)>,
}

/// A need as its cluster sent it.
pub(crate) struct NeedRow {
    pub(crate) source: usize,
    pub(crate) cluster: usize,
    pub(crate) profile: usize,
    pub(crate) key: Key,
    pub(crate) tier: usize,
    pub(crate) age: u32,
    pub(crate) held: Option<NoAcquire>,
}

/// Everything that a cycle decides from.
pub(crate) struct World<'a> {
    pub(crate) input: &'a CycleInput,
    pub(crate) names: Names<'a>,
    pub(crate) classes: Vec<ClassRow<'a>>,
    pub(crate) profiles: Profiles,
    /// By id.
    pub(crate) machines: Vec<MachineRow<'a>>,
    /// In the order in which they are served.
    pub(crate) needs: Vec<NeedRow>,
    pub(crate) runs: Vec<Run>,
    /// Machines of all runs, by id inside each run.
    pub(crate) members: Vec<usize>,
    /// Runs of bound and bought machines, by cluster.
    pub(crate) bound: Vec<Vec<usize>>,
    /// Runs that anybody may acquire from, by class.
    pub(crate) acquirable_of: Vec<Vec<usize>>,
    pub(crate) ready: Vec<bool>,
}

impl NeedRow {
    /// Gone quiet after too many hopeless cycles, but for a probe now and then
    /// (§4.1).
    pub(crate) fn is_parked(&self) -> bool {
        const PARK_AFTER: u32 = 8;
        const PROBE_EVERY: u32 = 32;
        self.age >= PARK_AFTER && !self.age.is_multiple_of(PROBE_EVERY)
    }
}

impl<'a> World<'a> {
    /// A need as its cluster sent it.
    pub(crate) fn need(&self, number: usize) -> &'a Need {
        &self.input.demand[self.needs[number].source]
    }

    /// Canonical text of a profile.
    pub(crate) fn fingerprint(&self, profile: usize) -> &Fingerprint {
        self.profiles.row(profile).profile.fingerprint()
    }

    /// What a class can hold.
    pub(crate) fn capacity(&self, class: usize) -> &Totals {
        &self.classes[class].capacity
    }
}
