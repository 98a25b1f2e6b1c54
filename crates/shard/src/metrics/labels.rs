//! Label values (shard chapter §18).

use std::sync::LazyLock;

use bigfleet_engine::Reason;
use bigfleet_model::{CapacityType, MachineState, PenaltyBucket};
use prometheus_client::encoding::EncodeLabelSet;

use crate::label::labels;

labels! {
    /// Part of a cycle.
    Phase {
        /// Merging what the provider said.
        Reconcile = "reconcile",
        /// Reading inventory and demand.
        Snapread = "snapread",
        /// Demand meets supply.
        Phase1 = "phase1",
        /// Inversions.
        Phase2 = "phase2",
        /// Releases.
        Phase3 = "phase3",
        /// Rails, hints, statuses, views.
        Emit = "emit",
        /// Handing actions to the workers.
        Execute = "execute",
    }
}

labels! {
    /// Importance, coarsely.
    PriorityClass {
        /// From 1,000,000 up.
        Critical = "critical",
        /// From 1,000 up.
        Service = "service",
        /// From 100 up.
        Batch = "batch",
        /// Below.
        Other = "other",
    }
}

impl PriorityClass {
    /// The class of a priority.
    #[must_use]
    pub const fn of(priority: i32) -> Self {
        match priority {
            1_000_000.. => Self::Critical,
            1_000.. => Self::Service,
            100.. => Self::Batch,
            _ => Self::Other,
        }
    }
}

labels! {
    /// Age of a shortfall in cycles.
    AgeBucket {
        /// Up to 9.
        From1 = "1-9",
        /// Up to 59.
        From10 = "10-59",
        /// Up to 299.
        From60 = "60-299",
        /// More.
        From300 = "300+",
    }
}

impl AgeBucket {
    /// The bucket of an age.
    #[must_use]
    pub const fn of(cycles: u32) -> Self {
        match cycles {
            300.. => Self::From300,
            60.. => Self::From60,
            10.. => Self::From10,
            _ => Self::From1,
        }
    }
}

labels! {
    /// What happened to a session.
    SessionEvent {
        /// It is its cluster's session.
        Installed = "installed",
        /// It ended.
        Removed = "removed",
        /// A newer one took its place.
        Replaced = "replaced",
    }
}

labels! {
    /// What became of a proposal to a commit broker. This engine has none.
    Proposal {
        /// Taken.
        Committed = "committed",
        /// Refused.
        Conflict = "conflict",
    }
}

labels! {
    /// What is between two owners, of a shared provider.
    Holding {
        /// Keys lost, and perhaps still acted on.
        Releasing = "releasing",
        /// Transfers that we let machines go for.
        Out = "out",
        /// Machines of others that are ours while unbound.
        Received = "received",
        /// Received machines that are done with, unheard so far.
        Settled = "settled",
    }
}

labels! {
    /// How a report to the coordinator went.
    ReportOutcome {
        /// Answered.
        Ok = "ok",
        /// Asked a follower.
        NotLeader = "not_leader",
        /// Nobody answered.
        Unavailable = "unavailable",
        /// Answered with an error.
        Error = "error",
    }
}

labels! {
    /// A stream that readers watch.
    WatchMethod {
        /// A row per need.
        InspectNeeds = "InspectNeeds",
        /// A frame per cycle.
        WatchSummary = "WatchSummary",
        /// A record per decision.
        WatchDecisions = "WatchDecisions",
    }
}

/// The label of a state.
#[must_use]
pub const fn state_label(state: MachineState) -> &'static str {
    match state {
        MachineState::Speculative => "speculative",
        MachineState::Creating => "creating",
        MachineState::Idle => "idle",
        MachineState::Configuring => "configuring",
        MachineState::Configured => "configured",
        MachineState::Draining => "draining",
        MachineState::Deleting => "deleting",
        MachineState::Failed => "failed",
    }
}

/// The label of a capacity type.
#[must_use]
pub const fn capacity_label(capacity_type: CapacityType) -> &'static str {
    match capacity_type {
        CapacityType::BareMetal => "bare_metal",
        CapacityType::Reserved => "reserved",
        CapacityType::OnDemand => "on_demand",
        CapacityType::Spot => "spot",
        CapacityType::Unspecified => "unspecified",
    }
}

/// The label of a base reason.
#[must_use]
pub const fn reason_label(reason: Reason) -> &'static str {
    match reason {
        Reason::PriorityStarved => "priority_starved",
        Reason::NoMatchingSupply => "no_matching_supply",
        Reason::TopologyUnsatisfiable => "topology_unsatisfiable",
        Reason::PreemptionExhausted => "preemption_exhausted",
    }
}

/// The label of a penalty.
pub(super) fn bucket_label(bucket: PenaltyBucket) -> &'static str {
    static LABELS: LazyLock<Vec<String>> = LazyLock::new(|| {
        (0..=PenaltyBucket::PINNED.to_wire())
            .filter_map(PenaltyBucket::from_wire)
            .map(|bucket| bucket.to_string())
            .collect()
    });
    let labels: &'static Vec<String> = &LABELS;
    usize::try_from(bucket.to_wire()).ok().and_then(|at| labels.get(at)).map_or("", String::as_str)
}

pub(super) const REASONS: [Reason; 4] = [
    Reason::PriorityStarved,
    Reason::NoMatchingSupply,
    Reason::TopologyUnsatisfiable,
    Reason::PreemptionExhausted,
];

/// Declares label sets.
macro_rules! label_sets {
    ($($name:ident { $($label:ident),+ })+) => {$(
        #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name {
            $(pub(super) $label: &'static str,)+
        }
    )+};
}

label_sets! {
    OfPhase { phase }
    OfClass { priority_class }
    OfReason { reason }
    OfAge { bucket }
    OfKind { kind }
    OfOutcome { outcome }
    OfEvent { event }
    OfHolding { holding }
    OfState { state }
    OfMethod { method }
    OfBucket { interruption_penalty_bucket }
    OfChange { from, to }
    OfExecution { kind, outcome }
    OfCost { capacity_type, state }
    OfMachines { state, capacity_type, interruption_penalty_bucket }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfCluster {
    pub(super) cluster: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_ages_begin_where_the_chapter_says() {
        for (priority, class) in [
            (i32::MIN, "other"),
            (99, "other"),
            (100, "batch"),
            (999, "batch"),
            (1_000, "service"),
            (999_999, "service"),
            (1_000_000, "critical"),
            (i32::MAX, "critical"),
        ] {
            assert_eq!(PriorityClass::of(priority).label(), class, "{priority}");
        }
        for (cycles, bucket) in
            [(1, "1-9"), (9, "1-9"), (10, "10-59"), (59, "10-59"), (60, "60-299"), (300, "300+")]
        {
            assert_eq!(AgeBucket::of(cycles).label(), bucket, "{cycles}");
        }
    }
}
