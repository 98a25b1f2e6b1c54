use bigfleet_crds::UpcomingNodePhase as Phase;
use bigfleet_wire::v1alpha1::MachineState;

/// The object as it stands when a frame arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Existing {
    /// Its phase; none when its first status write is still to come.
    pub phase: Option<Phase>,
    /// Failed because our drain ran out of time.
    pub drain_failed: bool,
}

/// What a frame does to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The object takes this phase; it is created if need be.
    Set(Phase),
    /// The phase stays, the rest follows the frame.
    Keep,
    /// The machine left: the object goes.
    Delete,
    /// Nothing, for there is no object and none is to come.
    Ignore,
    /// Nothing, for the state is not known.
    Unknown,
}

/// The phase table.
#[must_use]
pub fn effect(state: MachineState, gone: bool, existing: Option<Existing>) -> Effect {
    if gone {
        return Effect::Delete;
    }
    match state {
        MachineState::Unspecified => Effect::Unknown,
        MachineState::Speculative | MachineState::Creating => Effect::Set(Phase::Provisioning),
        MachineState::Idle => match existing {
            // A repeated closing frame must not bring the object back.
            None => Effect::Ignore,
            Some(Existing {
                phase: None | Some(Phase::Provisioning | Phase::Launched), ..
            }) => Effect::Set(Phase::Launched),
            Some(_) => Effect::Delete,
        },
        MachineState::Configuring => Effect::Set(Phase::Registered),
        MachineState::Configured => Effect::Set(Phase::Ready),
        MachineState::Draining => match existing {
            // Our own drain has got further than the frame tells. Any frame in between would
            // have moved the phase, so it is the same reclaim.
            Some(Existing { phase: Some(Phase::Drained), .. })
            | Some(Existing { drain_failed: true, .. }) => Effect::Keep,
            _ => Effect::Set(Phase::Draining),
        },
        MachineState::Deleting => match existing {
            None => Effect::Ignore,
            Some(_) => Effect::Delete,
        },
        MachineState::Failed => Effect::Set(Phase::Failed),
    }
}

/// The phase as it is written.
#[must_use]
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Provisioning => "Provisioning",
        Phase::Launched => "Launched",
        Phase::Registered => "Registered",
        Phase::Ready => "Ready",
        Phase::Draining => "Draining",
        Phase::Drained => "Drained",
        Phase::Failed => "Failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MachineState as S;

    const PHASES: [Phase; 7] = [
        Phase::Provisioning,
        Phase::Launched,
        Phase::Registered,
        Phase::Ready,
        Phase::Draining,
        Phase::Drained,
        Phase::Failed,
    ];

    fn every_existing() -> Vec<Option<Existing>> {
        let mut all = vec![None, Some(Existing { phase: None, drain_failed: false })];
        for phase in PHASES {
            all.push(Some(Existing { phase: Some(phase), drain_failed: false }));
        }
        all.push(Some(Existing { phase: Some(Phase::Failed), drain_failed: true }));
        all
    }

    #[test]
    fn states_without_exceptions_give_their_phase_whatever_stood_before() {
        for (state, phase) in [
            (S::Speculative, Phase::Provisioning),
            (S::Creating, Phase::Provisioning),
            (S::Configuring, Phase::Registered),
            (S::Configured, Phase::Ready),
            (S::Failed, Phase::Failed),
        ] {
            for existing in every_existing() {
                assert_eq!(effect(state, false, existing), Effect::Set(phase), "{existing:?}");
            }
        }
    }

    #[test]
    fn an_idle_machine_is_on_its_way_or_has_left() {
        assert_eq!(effect(S::Idle, false, None), Effect::Ignore);
        for existing in every_existing().into_iter().flatten() {
            let coming =
                matches!(existing.phase, None | Some(Phase::Provisioning | Phase::Launched));
            let expected = if coming { Effect::Set(Phase::Launched) } else { Effect::Delete };
            assert_eq!(effect(S::Idle, false, Some(existing)), expected, "{existing:?}");
        }
    }

    #[test]
    fn a_draining_machine_keeps_what_our_drain_came_to() {
        for existing in every_existing() {
            let ended =
                existing.is_some_and(|one| one.phase == Some(Phase::Drained) || one.drain_failed);
            let expected = if ended { Effect::Keep } else { Effect::Set(Phase::Draining) };
            assert_eq!(effect(S::Draining, false, existing), expected, "{existing:?}");
        }
    }

    #[test]
    fn what_is_gone_is_deleted_and_the_unknown_ignored() {
        for existing in every_existing() {
            for state in [S::Idle, S::Configured, S::Failed, S::Unspecified] {
                assert_eq!(effect(state, true, existing), Effect::Delete);
            }
            assert_eq!(effect(S::Unspecified, false, existing), Effect::Unknown);
            let deleting = if existing.is_some() { Effect::Delete } else { Effect::Ignore };
            assert_eq!(effect(S::Deleting, false, existing), deleting);
        }
    }
}
