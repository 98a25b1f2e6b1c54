//! The four ways to move a machine.

use std::fmt;

use bigfleet_model::MachineState;

/// A mutating call. With the machine's id it is the idempotency key, and not the
/// target state: Create and Drain both end in IDLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// SPECULATIVE → CREATING → IDLE.
    Create,
    /// IDLE → CONFIGURING → CONFIGURED.
    Configure,
    /// CONFIGURED → DRAINING → IDLE.
    Drain,
    /// IDLE → DELETING → SPECULATIVE.
    Delete,
}

impl Kind {
    /// In the order of a machine's life.
    pub const ALL: [Self; 4] = [Self::Create, Self::Configure, Self::Drain, Self::Delete];

    /// The only state it starts from.
    pub const fn source(self) -> MachineState {
        match self {
            Self::Create => MachineState::Speculative,
            Self::Configure | Self::Delete => MachineState::Idle,
            Self::Drain => MachineState::Configured,
        }
    }

    /// The state while it runs; no two kinds share one.
    pub const fn transitional(self) -> MachineState {
        match self {
            Self::Create => MachineState::Creating,
            Self::Configure => MachineState::Configuring,
            Self::Drain => MachineState::Draining,
            Self::Delete => MachineState::Deleting,
        }
    }

    /// The state it ends in.
    pub const fn target(self) -> MachineState {
        match self {
            Self::Create | Self::Drain => MachineState::Idle,
            Self::Configure => MachineState::Configured,
            Self::Delete => MachineState::Speculative,
        }
    }

    /// The kind that is under way in this state.
    pub fn running(state: MachineState) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.transitional() == state)
    }

    /// As it stands in texts, metrics and stores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Configure => "configure",
            Self::Drain => "drain",
            Self::Delete => "delete",
        }
    }

    /// The kind of this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use MachineState::{Configured, Configuring, Creating, Deleting, Draining, Idle, Speculative};

    use super::*;

    #[test]
    fn the_table_of_the_four_calls() {
        let table = [
            (Kind::Create, "create", Speculative, Creating, Idle),
            (Kind::Configure, "configure", Idle, Configuring, Configured),
            (Kind::Drain, "drain", Configured, Draining, Idle),
            (Kind::Delete, "delete", Idle, Deleting, Speculative),
        ];
        for (kind, name, source, transitional, target) in table {
            assert_eq!(kind.to_string(), name);
            assert_eq!(Kind::from_name(name), Some(kind));
            assert_eq!(
                (kind.source(), kind.transitional(), kind.target()),
                (source, transitional, target)
            );
            assert!(source.may_become(transitional) && transitional.may_become(target));
            assert_eq!(Kind::running(transitional), Some(kind));
            assert_eq!(Kind::running(source), None);
        }
        assert_eq!(Kind::running(MachineState::Failed), None);
    }
}
