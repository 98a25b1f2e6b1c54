//! After each cycle stamps follow claims (§1.7), so that *own* means "what I was
//! counted on last cycle". With birth stamps alone a need without own machines is
//! credited with another machine each time a cheaper one gets bound, and every
//! swap makes somebody else buy.

use std::sync::Arc;

use bigfleet_model::MachineState;

use crate::{
    engine::Engine,
    handle::{MachineIx, PreparedIx, RunIx, StampIx},
};

impl Engine {
    /// Gives every claimed machine its claimant's stamp, and takes the identity
    /// from unclaimed ones of ready clusters.
    pub fn restamp(&mut self) {
        let touched = std::mem::take(&mut self.decided.touched);
        for &need in &touched {
            if self.world.needs[need].removed {
                continue;
            }
            let stamp = self.stamp_number(need);
            if !self.carries(need, stamp) {
                let credits = std::mem::take(&mut self.world.needs[need].credits);
                credits.iter().for_each(|machine| self.world.stamp(*machine, stamp));
                self.world.needs[need].credits = credits;
            }
            let picks = std::mem::take(&mut self.world.needs[need].picks);
            for pick in &picks {
                // One that is reserved, not acquired.
                if self.world.machines.rows[pick.machine].state == MachineState::Creating {
                    self.world.stamp(pick.machine, stamp);
                }
            }
            self.world.needs[need].picks = picks;
        }
        self.decided.touched = touched;
        for (machine, stamp) in self.unclaimed() {
            self.world.stamp(machine, stamp);
        }
    }

    /// Number of the stamp that a need's machines carry.
    fn stamp_number(&mut self, need: PreparedIx) -> StampIx {
        if let Some(known) = self.world.needs[need].stamp {
            return known;
        }
        let stamp = Arc::new(self.stamp_of(need));
        let number = self.world.names.stamp(&stamp);
        self.world.needs[need].stamp = Some(number);
        number
    }

    /// Whether all that a need is credited with is its own and carries exactly its stamp, as
    /// is the rule: then there is no machine to look at.
    fn carries(&mut self, need: PreparedIx, stamp: StampIx) -> bool {
        let row = &self.world.needs[need];
        let account = &mut self.world.names.accounts[row.account];
        let mut runs = account.runs.iter();
        // Runs that go leave what is left as it was.
        account.unchecked =
            account.unchecked && !runs.all(|run| self.world.runs[*run].stamp == Some(stamp));
        row.tidy && !account.unchecked
    }

    /// Bound machines of ready clusters that nobody claims and that still carry
    /// somebody's identity, with the stamp that is left of it.
    fn unclaimed(&mut self) -> Vec<(MachineIx, StampIx)> {
        let names = &self.world.names;
        let ready = names.clusters.iter().filter(|(_, cluster)| cluster.ready);
        let open: Vec<RunIx> = ready.flat_map(|(_, cluster)| &cluster.open).copied().collect();
        let mut found = Vec::new();
        for run in open {
            let stamp = self.world.runs[run].stamp;
            let Some(known) = stamp else { continue };
            let stamp = self.world.names.nameless(known);
            if stamp == known {
                continue;
            }
            let rows = &self.world.machines.rows;
            let members = self.world.runs[run].members.iter();
            let members = members.filter(|machine| {
                // Whoever outgrew one and still runs on it is known by its stamp.
                rows[**machine].claimant.is_none() && self.world.outgrown_by(**machine).is_none()
            });
            found.extend(members.map(|machine| (*machine, stamp)));
        }
        found
    }
}
