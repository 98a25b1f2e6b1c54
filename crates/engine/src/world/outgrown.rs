//! Machines that a need outgrew, and still runs on (§6.5). While a cycle decides,
//! nobody else can have them; once it has ended they are unclaimed again, for they
//! count for nobody.

use super::World;
use crate::handle::{MachineIx, PreparedIx};

impl World {
    /// Leaves a machine to a need that outgrew it. Neither the need's nor its account's
    /// claims count it.
    pub(crate) fn outgrow(&mut self, machine: MachineIx, need: PreparedIx) {
        self.outgrown.push((machine, need));
        let row = &mut self.machines.rows[machine];
        row.claimant = Some(need);
        if let Some(number) = row.run {
            self.runs[number].claimed += 1;
            if !self.runs[number].has_unclaimed() {
                self.open_or_close(number);
            }
        }
    }

    /// A machine is unclaimed again. It stays listed.
    pub(crate) fn let_go(&mut self, machine: MachineIx) {
        let row = &mut self.machines.rows[machine];
        row.claimant = None;
        if let Some(number) = row.run {
            let run = &mut self.runs[number];
            run.claimed -= 1;
            (run.next, run.view) = (0, 0);
            if run.open_at.is_none() {
                self.open_or_close(number);
            }
        }
    }

    /// At the end of a cycle.
    pub(crate) fn let_outgrown_go(&mut self) {
        let mut outgrown = std::mem::take(&mut self.outgrown);
        outgrown.iter().for_each(|(machine, _)| self.let_go(*machine));
        outgrown.sort_unstable();
        self.outgrown = outgrown;
    }

    /// The need that outgrew a machine and still runs on it, as the last cycle saw it.
    pub(crate) fn outgrown_by(&self, machine: MachineIx) -> Option<PreparedIx> {
        let at = self.outgrown.binary_search_by_key(&machine, |(known, _)| *known).ok()?;
        let (_, need) = self.outgrown[at];
        let run = self.machines.rows[machine].run.map(|run| &self.runs[run]);
        // Either may have gone since, and its number may be another's.
        let row = &self.needs[need];
        let still = !row.removed && run.is_some_and(|run| run.account == Some(row.account));
        still.then_some(need)
    }
}
