//! Stamps of what moves are renewed like those of what rests (§5).

use bigfleet_engine::ActionKind;
use bigfleet_model::MachineState;

use crate::live::Desk;

impl Desk<'_> {
    /// Gives machines that moved since the snapshot, and pending acquisitions, the
    /// stamp of whoever the last cycle counts them for, if that is still the same
    /// cluster. Memory only: nobody is told, and no List is made older by it.
    pub(crate) fn restamp_moving(&mut self) {
        let engine = &self.decider.engine;
        for (machine, entry) in &mut self.live.entries {
            let Some(stamp) = engine.stamp_on(machine) else { continue };
            let state = entry.tracked.machine.state;
            let pending = entry.pending.as_mut().map(|pending| &mut pending.action.kind);
            if let Some(ActionKind::Bootstrap(bound) | ActionKind::Provision(bound)) = pending
                && matches!(state, MachineState::Idle | MachineState::Speculative)
            {
                if stamp.for_cluster.as_ref() == Some(&bound.cluster) {
                    bound.stamp = stamp;
                }
                continue;
            }
            let of = match state {
                MachineState::Configuring | MachineState::Configured => {
                    entry.tracked.machine.cluster.as_ref()
                }
                MachineState::Creating => {
                    let stamp = entry.tracked.machine.stamp.as_ref();
                    stamp.and_then(|stamp| stamp.for_cluster.as_ref())
                }
                _ => None,
            };
            if of.is_some() && of == stamp.for_cluster.as_ref() {
                entry.tracked.machine.stamp = Some(stamp);
            }
        }
    }
}
