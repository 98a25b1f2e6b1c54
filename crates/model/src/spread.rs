//! Topology spread (engine chapter §1.4).

use bigfleet_wire::v1alpha1 as wire;

wire_enum! {
    /// What to do when a spread cannot be kept.
    WhenUnsatisfiable as wire::topology_spread::WhenUnsatisfiable {
        /// Read as no constraint.
        Unspecified = 0,
        /// The only value that constrains the engine.
        DoNotSchedule = 1,
        /// No constraint.
        ScheduleAnyway = 2,
    }
}

/// How evenly machines lie over the values of a topology key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopologySpread {
    /// Attribute whose values are the domains.
    pub topology_key: String,
    /// As sent; see [`TopologySpread::skew`].
    pub max_skew: i32,
    /// Hard or soft.
    pub when_unsatisfiable: WhenUnsatisfiable,
}

impl TopologySpread {
    /// Whether it binds the engine.
    pub fn is_hard(&self) -> bool {
        self.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
    }

    /// The allowed skew: anything below 1 is read as 1. The text of a profile
    /// keeps the number as sent, so that both ends of a session print the same.
    pub fn skew(&self) -> u32 {
        self.max_skew.max(1).unsigned_abs()
    }
}

impl From<&TopologySpread> for wire::TopologySpread {
    fn from(spread: &TopologySpread) -> Self {
        Self {
            topology_key: spread.topology_key.clone(),
            max_skew: spread.max_skew,
            when_unsatisfiable: spread.when_unsatisfiable.to_wire(),
        }
    }
}
