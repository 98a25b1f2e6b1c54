//! What the ledger wants done beside the writes of a machine's own worker.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_wire::v1alpha1::ReclaimAck;

use crate::dispatch::Moment;

/// Names the work on one machine: the name of its UpcomingNode.
pub type Key = Arc<str>;

/// A Node, to speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeId {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
}

/// Something to be done at once; none of it waits.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A machine has work.
    Due {
        /// The machine.
        key: Key,
        /// A reclaim waits for it.
        urgent: bool,
    },
    /// Tell the shard.
    Ack(ReclaimAck),
    /// Drain a node.
    Start(Start),
    /// A running drain ends earlier.
    Sooner {
        /// Which drain.
        number: u64,
        /// Its new deadline.
        deadline: Moment,
    },
    /// A running drain stops; no eviction of it is sent any more.
    Stop {
        /// Which drain.
        number: u64,
    },
    /// Write an event.
    Tell(Told),
    /// A frame was ignored, for this reason.
    Ignored(&'static str),
    /// A frame is worked off.
    Handled {
        /// When it was received.
        received: Moment,
        /// Nothing had to be written.
        noop: bool,
    },
}

/// A drain to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The node.
    pub node: NodeId,
    /// Tells this drain from others of the node.
    pub number: u64,
    /// When it ends.
    pub deadline: Moment,
    /// Its deadline had passed before this process saw it.
    pub overdue: bool,
    /// The grace it began with, for display.
    pub grace: Duration,
    /// Who takes the machine, for display; 0 for nobody.
    pub preemptor_priority: i32,
}

/// What people are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A node is being reclaimed.
    Reclaim {
        /// The node.
        node: NodeId,
        /// The instruction.
        instruction: Arc<str>,
        /// Its grace.
        grace: Duration,
        /// Who takes the machine; 0 for nobody.
        preemptor_priority: i32,
    },
    /// A node was drained.
    Drained(NodeId),
    /// A drain ran out of time; the text names the pods.
    DrainTimeout(NodeId, Arc<str>),
    /// A node takes pods again.
    Uncordoned(NodeId),
    /// The provider removed the machine of this node; the text says more.
    MachineRemoved(NodeId, Arc<str>),
    /// A machine is said to be ready and its node is not there, or not ready.
    NotReady {
        /// The node, where there is one.
        node: Option<NodeId>,
        /// The UpcomingNode.
        object: Key,
        /// The machine.
        machine: Arc<str>,
    },
    /// A reclaim names a node that cannot be found.
    Unresolved {
        /// The instruction.
        instruction: Arc<str>,
        /// What it names.
        name: Arc<str>,
    },
}
