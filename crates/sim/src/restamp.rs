//! The re-stamp after each cycle (engine chapter §1.7): *own* means "what I was
//! counted on last cycle".

use std::sync::Arc;

use bigfleet_engine::CycleOutput;
use bigfleet_model::{ClusterId, Fingerprint, Group, MachineState, Stamp};

use crate::{demand::Demand, provider::Provider};

/// Renews the stamps of machines and of pending actions from the claims of a
/// decision.
pub(crate) fn restamp(provider: &mut Provider, demand: &Demand, output: &CycleOutput) {
    let stamps: Vec<Option<Arc<Stamp>>> =
        output.verdicts.iter().map(|verdict| demand.stamp(verdict).map(Arc::new)).collect();
    for (id, bound) in provider.serving() {
        let claimant = output.claims.get(&id).and_then(|need| stamps[need.0 as usize].as_ref());
        provider.want(&id, claimant.is_some());
        let Some(mut slot) = provider.stamp_mut(&id) else { continue };
        let renewed = match (claimant, slot.get()) {
            (Some(claimant), _) => claimant.clone(),
            (None, Some(known)) if loses(bound.as_ref(), known, demand) => Arc::new(Stamp {
                fingerprint: Fingerprint::from(""),
                group: Group::none(),
                ..known.clone()
            }),
            _ => continue,
        };
        slot.set(renewed);
    }
}

/// Whether a machine that nobody claims forgets whom it served.
fn loses(bound: Option<&ClusterId>, stamp: &Stamp, demand: &Demand) -> bool {
    bound.is_some_and(|cluster| demand.ready().contains(cluster))
        && (!stamp.fingerprint.as_str().is_empty() || stamp.group != Group::none())
}

/// Whether a machine in this state may be claimed and keep a stamp.
pub(crate) const fn serves(state: MachineState) -> bool {
    matches!(state, MachineState::Creating | MachineState::Configuring | MachineState::Configured)
}
