//! Label values (kubernetes chapter §10).

use bigfleet_net::labels;
use prometheus_client::encoding::EncodeLabelSet;

labels! {
    /// Part of a roll-up cycle.
    RollupPhase {
        /// Taking in what changed in the cache.
        List = "list",
        /// Folding and encoding.
        Build = "build",
        /// Into the slot.
        Enqueue = "enqueue",
    }
}

labels! {
    /// Why roll-ups are held.
    HoldReason {
        /// The cache of CapacityRequests has not been filled.
        Unsynced = "unsynced",
        /// The definition of CapacityRequest is absent, terminating or cannot be seen.
        CrdMissing = "crd_missing",
        /// Whoever writes CapacityRequests is not alive.
        DemandSource = "demand_source",
    }
}

labels! {
    /// What was written to an UpcomingNode.
    WriteOp {
        /// The object.
        Create = "create",
        /// Labels, resources, taints.
        SpecUpdate = "spec_update",
        /// Phase and what belongs to it.
        StatusUpdate = "status_update",
        /// Its end.
        Delete = "delete",
    }
}

labels! {
    /// What became of a write.
    WriteOutcome {
        /// Written.
        Success = "success",
        /// Refused for a conflict.
        Conflict = "conflict",
        /// Failed otherwise.
        Error = "error",
        /// Nothing to write.
        Noop = "noop",
    }
}

labels! {
    /// Part of handling a node state frame.
    NodeStatePhase {
        /// From receipt to the handler.
        Queue = "queue",
        /// The writes.
        Write = "write",
        /// From receipt to the end.
        Total = "total",
    }
}

labels! {
    /// How a drain ended.
    DrainOutcome {
        /// Every pod left.
        Drained = "drained",
        /// The grace was over first.
        Timeout = "timeout",
        /// The node or its binding was over first.
        Stopped = "stopped",
    }
}

labels! {
    /// What the API server said to an eviction.
    EvictionOutcome {
        /// Accepted.
        Evicted = "evicted",
        /// The pod had left.
        Gone = "gone",
        /// A disruption budget forbids it for now.
        Blocked = "blocked",
        /// The pod is another one by now.
        Conflict = "conflict",
        /// We may not.
        Forbidden = "forbidden",
        /// Anything else.
        Error = "error",
    }
}

labels! {
    /// How a bootstrap request was answered.
    RenderOutcome {
        /// With a blob.
        Success = "success",
        /// With an error.
        Error = "error",
    }
}

labels! {
    /// How a change of a file behind bootstrap blobs was taken.
    ReloadOutcome {
        /// It is in use.
        Success = "success",
        /// It is bad; the last good one stays in use.
        Error = "error",
    }
}

labels! {
    /// Why a node state frame was not followed.
    IgnoredFrame {
        /// It names no machine.
        EmptyMachineId = "empty_machine_id",
        /// It names no state that is known here.
        UnknownState = "unknown_state",
        /// It names another cluster.
        OtherCluster = "other_cluster",
        /// The machine left, and left no object.
        NoObject = "no_object",
    }
}

macro_rules! label_sets {
    ($($name:ident { $($field:ident),+ })+) => {
        $(
            #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
            pub(super) struct $name {
                $(pub(super) $field: &'static str,)+
            }
        )+
    };
}

label_sets! {
    OfPhase { phase }
    OfReason { reason }
    OfOutcome { outcome }
    OfWrite { op, outcome }
}

/// The reasons of the wire, which are named there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfUnmet {
    pub(super) reason: String,
}
