//! After each cycle stamps follow claims (§1.7), so that *own* means "what I was
//! counted on last cycle". With birth stamps alone a need without own machines is
//! credited with another machine each time a cheaper one gets bound, and every
//! swap makes somebody else buy.

use std::sync::Arc;

use bigfleet_model::{Fingerprint, Group, MachineState, Stamp};

use crate::{
    engine::Engine,
    handle::{MachineIx, PreparedIx},
};

impl Engine {
    /// Gives every claimed machine its claimant's stamp, and takes the identity
    /// from unclaimed ones of ready clusters.
    pub fn restamp(&mut self) {
        let touched = std::mem::take(&mut self.decided.touched);
        for &need in &touched {
            let claims = self.stampable(need);
            if !claims.is_empty() {
                let stamp = Arc::new(self.stamp_of(need));
                claims.iter().for_each(|machine| self.world.stamp(*machine, &stamp));
            }
        }
        self.decided.touched = touched;
        for (machine, known) in self.unclaimed() {
            let stamp = Stamp {
                fingerprint: Fingerprint::from(""),
                group: Group::none(),
                ..(*known).clone()
            };
            self.world.stamp(machine, &Arc::new(stamp));
        }
    }

    /// What a need claims among machines that carry stamps.
    fn stampable(&self, need: PreparedIx) -> Vec<MachineIx> {
        let row = &self.world.needs[need];
        let creating = |machine: &MachineIx| {
            self.world.machines.rows[*machine].state == MachineState::Creating
        };
        let reserved = row.picks.iter().map(|pick| pick.machine).filter(creating);
        row.credits.iter().copied().chain(reserved).filter(|_| !row.removed).collect()
    }

    /// Bound machines of ready clusters that nobody claims and that still carry
    /// somebody's identity.
    fn unclaimed(&self) -> Vec<(MachineIx, Arc<Stamp>)> {
        let world = &self.world;
        let mut found = Vec::new();
        for (_, cluster) in world.names.clusters.iter().filter(|(_, cluster)| cluster.ready) {
            for &run in &cluster.open {
                let row = &world.runs[run];
                let Some(stamp) = row.stamp.map(|stamp| &world.names.stamps[stamp].stamp) else {
                    continue;
                };
                if stamp.fingerprint.as_str().is_empty() && stamp.group.is_empty() {
                    continue;
                }
                let unclaimed =
                    |machine: &&MachineIx| world.machines.rows[**machine].claimant.is_none();
                let members = row.members.iter().filter(unclaimed);
                found.extend(members.map(|machine| (*machine, stamp.clone())));
            }
        }
        found
    }
}
