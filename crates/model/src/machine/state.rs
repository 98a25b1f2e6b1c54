//! The life of a machine (engine chapter §1.7).

use bigfleet_wire::v1alpha1 as wire;

wire_enum! {
    /// Where a machine stands. There is no "unspecified": the inventory gate
    /// refuses it.
    MachineState as wire::MachineState {
        /// Could be created; no host, costs nothing.
        Speculative = 1,
        /// Being bought or commissioned.
        Creating = 2,
        /// Has a host, serves nobody.
        Idle = 3,
        /// Joining a cluster.
        Configuring = 4,
        /// Node joined and Ready.
        Configured = 5,
        /// Leaving a cluster.
        Draining = 6,
        /// Being given back.
        Deleting = 7,
        /// Went wrong; leaves this state by no decision of ours.
        Failed = 8,
    }
}

impl MachineState {
    /// The legal moves. `Configuring → Idle` is the rollback of a binding that
    /// never reached the provider.
    pub const fn may_become(self, next: Self) -> bool {
        use MachineState::{
            Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative,
        };
        matches!(
            (self, next),
            (Speculative, Creating)
                | (Creating, Idle | Failed)
                | (Idle, Configuring | Deleting)
                | (Configuring, Configured | Failed | Idle)
                | (Configured, Draining)
                | (Draining, Idle | Failed)
                | (Deleting, Speculative | Failed)
        )
    }

    /// The name on the wire, without its prefix.
    pub const fn wire_name(self) -> &'static str {
        match self {
            Self::Speculative => "SPECULATIVE",
            Self::Creating => "CREATING",
            Self::Idle => "IDLE",
            Self::Configuring => "CONFIGURING",
            Self::Configured => "CONFIGURED",
            Self::Draining => "DRAINING",
            Self::Deleting => "DELETING",
            Self::Failed => "FAILED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MachineState::{self, *};

    #[test]
    fn exactly_the_legal_moves_are_allowed() {
        let legal = [
            (Speculative, Creating),
            (Creating, Idle),
            (Creating, Failed),
            (Idle, Configuring),
            (Idle, Deleting),
            (Configuring, Configured),
            (Configuring, Failed),
            (Configuring, Idle),
            (Configured, Draining),
            (Draining, Idle),
            (Draining, Failed),
            (Deleting, Speculative),
            (Deleting, Failed),
        ];
        for from in MachineState::ALL {
            for to in MachineState::ALL {
                let expected = legal.contains(&(*from, *to));
                assert_eq!(from.may_become(*to), expected, "{from:?} -> {to:?}");
            }
        }
    }
}
