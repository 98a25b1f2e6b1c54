//! The re-stamp after each cycle (engine chapter §1.7): *own* means "what I was
//! counted on last cycle".

use std::{collections::BTreeSet, sync::Arc};

use bigfleet_engine::CycleOutput;
use bigfleet_model::{ClusterId, Fingerprint, Group, MachineState, Stamp};

use crate::{demand::Demand, provider::Provider};

/// Renews the stamps of machines and of pending actions from the claims of a
/// decision.
pub(crate) fn restamp(provider: &mut Provider, demand: &Demand, output: &CycleOutput) {
    let stamps: Vec<Option<Arc<Stamp>>> =
        output.verdicts.iter().map(|verdict| demand.stamp(verdict).map(Arc::new)).collect();
    let known: BTreeSet<(&Fingerprint, &Group, &ClusterId)> = output
        .verdicts
        .iter()
        .map(|verdict| (&verdict.fingerprint, &verdict.group, &verdict.cluster))
        .collect();
    for (id, bound) in provider.serving() {
        let claimant = output.claims.get(&id).and_then(|need| stamps[need.0 as usize].as_ref());
        if output.outgrown.contains_key(&id) {
            // Whoever outgrew it and still runs on it is known by its stamp.
            continue;
        }
        let Some(mut slot) = provider.stamp_mut(&id) else { continue };
        let renewed = match (claimant, slot.get()) {
            (Some(claimant), _) => Some(claimant.clone()),
            (None, Some(known)) if loses(bound.as_ref(), known, demand) => Some(Arc::new(Stamp {
                fingerprint: Fingerprint::from(""),
                group: Group::none(),
                ..known.clone()
            })),
            (None, known) => known.cloned().map(Arc::new),
        };
        let Some(renewed) = renewed else { continue };
        let names = |cluster| known.contains(&(&renewed.fingerprint, &renewed.group, cluster));
        let wanted = renewed.for_cluster.as_ref().is_some_and(names);
        slot.set(renewed);
        provider.want(&id, wanted);
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
