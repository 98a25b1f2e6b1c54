//! What a run cost.

use std::collections::BTreeMap;

use bigfleet_engine::{Action, ActionKind, Time};
use bigfleet_model::MachineId;

/// Actions decided, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Idle machines bound.
    pub bootstraps: u64,
    /// Of these, machines that this run bought and that turned Idle before they
    /// were bound: the second half of one acquisition.
    pub completions: u64,
    /// Machines bought.
    pub provisions: u64,
    /// Machines taken for somebody more important.
    pub preempts: u64,
    /// Machines taken because nobody needs them.
    pub reclaims: u64,
    /// Machines given back.
    pub deletes: u64,
    /// When each machine was bought.
    pub creates: BTreeMap<MachineId, Vec<Time>>,
    /// Number of the last cycle that decided anything, counted from 1.
    pub last_action: u64,
}

impl Counters {
    /// Machines acquired: bound or bought, each purchase once.
    pub const fn acquisitions(&self) -> u64 {
        self.bootstraps + self.provisions - self.completions
    }

    /// All actions.
    pub const fn actions(&self) -> u64 {
        self.bootstraps + self.provisions + self.preempts + self.reclaims + self.deletes
    }

    /// Takes in the decisions of one cycle.
    pub(crate) fn record(&mut self, cycle: u64, now: Time, actions: &[Action]) {
        if !actions.is_empty() {
            self.last_action = cycle;
        }
        for action in actions {
            match action.kind {
                ActionKind::Bootstrap(_) => self.bootstraps += 1,
                ActionKind::Provision(_) => {
                    self.provisions += 1;
                    self.creates.entry(action.machine.clone()).or_default().push(now);
                }
                ActionKind::Preempt { .. } => self.preempts += 1,
                ActionKind::Reclaim { .. } => self.reclaims += 1,
                ActionKind::Delete => self.deletes += 1,
            }
        }
    }
}
