//! Claims on the machines of runs: who counts on what.

use bigfleet_model::MachineState;

use super::World;
use crate::handle::{MachineIx, PreparedIx, RunIx};

impl World {
    pub(crate) fn claim(&mut self, machine: MachineIx, need: PreparedIx) {
        self.claim_digests.add(machine, need);
        let row = &mut self.machines.rows[machine];
        row.claimant = Some(need);
        let ready = row.state == MachineState::Configured;
        if let Some(number) = row.run {
            let run = &mut self.runs[number];
            run.claimed += 1;
            if let Some(account) = run.account {
                self.names.accounts[account].claimed += 1;
            }
            if !run.has_unclaimed() {
                self.open_or_close(number);
            }
        }
        if !ready {
            self.count_unready(need, true);
        }
    }

    /// Ends the last claim of those that a need has on a run, all of its first
    /// machines.
    pub(crate) fn unclaim_last(&mut self, machine: MachineIx) {
        self.unclaim(machine);
        let row = &self.machines.rows[machine];
        if let Some(run) = row.run {
            let of_run = &self.runs[run];
            // As many are still claimed as come before it, unless others claim of the
            // run, too. A look at another machine is a look at memory far away.
            let label = |known: &MachineIx| self.machines.rows[*known].label;
            let before = if of_run.members.get(of_run.claimed as usize) == Some(&machine) {
                of_run.claimed as usize
            } else {
                of_run.members.partition_point(|known| label(known) < row.label)
            };
            self.runs[run].next = before as u32;
        }
    }

    pub(crate) fn unclaim(&mut self, machine: MachineIx) {
        let row = &mut self.machines.rows[machine];
        let Some(need) = row.claimant.take() else { return };
        self.claim_digests.take(machine, need);
        let ready = row.state == MachineState::Configured;
        if let Some(number) = row.run {
            let run = &mut self.runs[number];
            run.claimed -= 1;
            if let Some(account) = run.account {
                self.names.accounts[account].claimed -= 1;
            }
            run.next = 0;
            run.view = 0;
            if let Some(cluster) = run.cluster {
                let returns = &mut self.names.clusters[cluster].returns;
                *returns = returns.wrapping_add(1);
            }
            if run.open_at.is_none() {
                self.open_or_close(number);
            }
        }
        if !ready {
            self.count_unready(need, false);
        }
    }

    /// One more machine of a need that is not Configured yet, or one fewer.
    pub(super) fn count_unready(&mut self, need: PreparedIx, more: bool) {
        let row = &mut self.needs[need];
        if !more {
            row.unready = row.unready.saturating_sub(1);
            return;
        }
        row.unready += 1;
        if !row.listed_unready {
            row.listed_unready = true;
            self.unready.push(need);
        }
    }

    /// The first member at or after a place that nobody claims.
    pub(crate) fn unclaimed_from(&self, run: RunIx, mut at: u32) -> u32 {
        let row = &self.runs[run];
        let members = &row.members;
        if !row.has_unclaimed() {
            return members.len() as u32;
        }
        while let Some(member) = members.get(at as usize)
            && self.machines.rows[*member].claimant.is_some()
        {
            at += 1;
        }
        at
    }
}
