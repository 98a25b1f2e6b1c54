//! What a cycle asks for (engine chapter §3).

use std::{sync::Arc, time::Duration};

use bigfleet_model::{ClusterId, MachineId, MachineState, Stamp};

use crate::{input::NeedKey, output::NeedIdx};

/// One step for one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Which machine.
    pub machine: MachineId,
    /// What to do with it.
    pub kind: ActionKind,
    /// Dollars per hour: effective cost for the need, or the machine's price.
    pub cost: f64,
    /// What the same share would have cost on the next best class.
    pub runner_up_cost: Option<f64>,
    /// For gangs, which rule of the domain choice decided; 0 without a contest.
    pub domain_rule: u8,
}

/// What is done. The fields are what execution and the next cycle need.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    /// Idle → Configured.
    Bootstrap(Acquisition),
    /// Speculative → Configured: create, then configure.
    Provision(Acquisition),
    /// Configured → Idle, for somebody more important.
    Preempt {
        /// Whom it is taken from.
        cluster: ClusterId,
        /// Time to leave.
        grace: Duration,
        /// Priority of the need that asks for it.
        preemptor_priority: i32,
        /// The need that asks for it.
        preemptor: NeedKey,
        /// Its number in the verdicts of the cycle that decided.
        need: NeedIdx,
    },
    /// Configured → Idle, for nobody needs it.
    Reclaim {
        /// Whom it is taken from.
        cluster: ClusterId,
        /// Time to leave.
        grace: Duration,
    },
    /// Idle → Speculative.
    Delete,
}

/// For whom a machine is acquired.
#[derive(Clone, Debug, PartialEq)]
pub struct Acquisition {
    /// Destination.
    pub cluster: ClusterId,
    /// What the machine will carry.
    pub stamp: Arc<Stamp>,
    /// Number of the need in the verdicts of the cycle that decided.
    pub need: NeedIdx,
}

impl ActionKind {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bootstrap(_) => "Bootstrap",
            Self::Provision(_) => "Provision",
            Self::Preempt { .. } => "Preempt",
            Self::Reclaim { .. } => "Reclaim",
            Self::Delete => "Delete",
        }
    }

    /// Why, as audit logs say it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Bootstrap(_) => "phase1.idle",
            Self::Provision(_) => "phase1.speculative",
            Self::Preempt { .. } => "phase2.inversion",
            Self::Reclaim { .. } => "phase3.excess",
            Self::Delete => "phase3.release",
        }
    }

    /// The state in which a machine must be for the action to mean anything.
    pub const fn start(&self) -> MachineState {
        match self {
            Self::Bootstrap(_) | Self::Delete => MachineState::Idle,
            Self::Provision(_) => MachineState::Speculative,
            Self::Preempt { .. } | Self::Reclaim { .. } => MachineState::Configured,
        }
    }

    /// The cluster that gets or loses the machine.
    pub const fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Bootstrap(acquisition) | Self::Provision(acquisition) => {
                Some(&acquisition.cluster)
            }
            Self::Preempt { cluster, .. } | Self::Reclaim { cluster, .. } => Some(cluster),
            Self::Delete => None,
        }
    }
}

/// Actions of one cycle by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionCounts {
    /// Idle machines bound.
    pub bootstrap: usize,
    /// Machines bought.
    pub provision: usize,
    /// Machines taken for somebody more important.
    pub preempt: usize,
    /// Machines that nobody needs.
    pub reclaim: usize,
    /// Machines given back to their provider.
    pub delete: usize,
}

impl ActionCounts {
    /// All of them.
    pub const fn sum(&self) -> usize {
        self.bootstrap + self.provision + self.preempt + self.reclaim + self.delete
    }
}
