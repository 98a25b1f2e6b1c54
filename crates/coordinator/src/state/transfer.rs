//! Machines on their way from one shard to another (coordinator chapter §9).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::id::{Domain, MachineId, ShardId};

/// What is moved, in rising order of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TransferKind {
    /// Idle machines.
    Idle,
    /// Slots that are not machines yet.
    Speculative,
    /// Machines whose work yields to dearer work.
    Drain,
}

impl TransferKind {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Speculative => "speculative",
            Self::Drain => "drain",
        }
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TransferPhase {
    /// The donor is asked.
    Releasing,
    /// The recipient owns the machines while they are unbound.
    Moved,
}

impl TransferPhase {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Releasing, Self::Moved];

    /// In words; as a metric's label, too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Releasing => "releasing",
            Self::Moved => "moved",
        }
    }
}

/// What a donor is asked for: the wire's selector, and for a drain whose work must
/// yield. Fields are in the order of their names: they are keys of the payload, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferRequest {
    /// The wire's number of the capacity type.
    pub capacity_type: i32,
    /// At most so many machines.
    pub count: i32,
    /// Their type.
    pub instance_type: String,
    /// Each must hold this: quantities by resource.
    pub min_unit: BTreeMap<String, String>,
    /// A drain's victims are in a lower bucket; the wire's number.
    pub preemptor_penalty_bucket: i32,
    /// A drain's victims have a lower priority.
    pub preemptor_priority: i32,
    /// What else they must satisfy.
    pub requirements: Vec<TransferRequirement>,
    /// Their zone.
    pub zone: String,
}

/// One requirement, in the wire's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferRequirement {
    /// The label's key.
    pub key: String,
    /// The wire's number of the operator.
    pub operator: i32,
    /// The values.
    pub values: Vec<String>,
}

/// A transfer that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What is moved.
    pub kind: TransferKind,
    /// The donor; once Moved it may be gone.
    pub from: ShardId,
    /// The recipient.
    pub to: ShardId,
    /// What the donor was asked for.
    pub request: TransferRequest,
    /// How far it is.
    pub phase: TransferPhase,
    /// Where the machines go back to; set when Moved.
    pub home: Option<Domain>,
    /// The machines; none while Releasing, at least one when Moved.
    pub machine_ids: BTreeSet<MachineId>,
}
