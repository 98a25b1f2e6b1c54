//! What must be decided again, and what a need keeps while it waits for its turn.

use super::{KeepLevel, Looked, Unit, World};
use crate::handle::{AccountIx, MachineIx, PreparedIx, RunIx};

impl World {
    /// A kept claim ends, for its machine changes.
    pub(super) fn lose(&mut self, need: PreparedIx, machine: MachineIx) {
        let row = &self.machines.rows[machine];
        if !self.needs[need].kept || row.claimant != Some(need) {
            return;
        }
        if let Some(run) = row.run {
            self.uncover(need, run);
            self.needs[need].has_gaps = true;
        }
        self.unclaim(machine);
    }

    /// A need is covered by one machine of a run less.
    fn uncover(&mut self, need: PreparedIx, run: RunIx) {
        let capacity = &self.classes[self.runs[run].class].capacity;
        let row = &mut self.needs[need];
        row.covered.sub_sat_assign(self.pools[row.pool].contribution(capacity).as_ref());
    }

    /// A machine joins a run: if a kept claim would not have been made before it,
    /// its owner starts over.
    pub(super) fn gain(&mut self, run: RunIx, label: u64) {
        let of_run = &self.runs[run];
        let owner = of_run.account.and_then(|account| self.names.accounts[account].need);
        let Some(need) = owner.filter(|need| self.needs[*need].kept) else { return };
        let row = &self.needs[need];
        let Some(last) = row.credits.last() else { return };
        let last = &self.machines.rows[*last];
        let goes_after = !row.has_gaps
            && last.run.is_some_and(|other| {
                let order = self.keep_level(other).cmp(&self.keep_level(run));
                order.then_with(|| last.label.cmp(&label)).is_lt()
            });
        if !goes_after && self.usable(row, of_run.class) {
            self.start_afresh(need);
        }
    }

    /// A run's place in a walk, but for the id: bound before bought, then keep
    /// order (§2, §6.1).
    pub(crate) fn keep_level(&self, run: RunIx) -> KeepLevel {
        let row = &self.runs[run];
        let stamp = row.stamp.map(|stamp| &self.names.stamps[stamp]);
        KeepLevel {
            kind: row.kind,
            price: self.classes[row.class].price,
            reclamation: stamp.map_or(0.0, |stamp| stamp.reclamation),
        }
    }

    /// A queued need gives back what it kept: somebody more important takes of
    /// it, or it cannot tell what it would take now.
    pub(crate) fn start_afresh(&mut self, need: PreparedIx) {
        if self.end_rest(need) {
            self.release(need);
        }
    }

    /// A need no longer holds what it kept; false if it kept nothing.
    pub(crate) fn end_rest(&mut self, need: PreparedIx) -> bool {
        let tier = self.precedence(need);
        let row = &mut self.needs[need];
        let kept = std::mem::take(&mut row.kept);
        if kept {
            self.names.clusters[row.cluster].end_rest(tier);
        }
        kept
    }

    /// Takes from a need of a lower tier, which must be decided again.
    pub(crate) fn rob(&mut self, need: PreparedIx) {
        // Robbed once, it waits for its turn already.
        if self.is_settled(need) {
            if !self.needs[need].kept {
                self.touch(need);
            }
            self.start_afresh(need);
        }
    }

    /// Gives back what a need meant to acquire, and leaves it its own machines:
    /// its next walk begins with the same ones.
    fn keep(&mut self, need: PreparedIx) {
        let row = &mut self.needs[need];
        (row.kept, row.has_gaps) = (true, false);
        let mut picks = std::mem::take(&mut row.picks);
        for pick in picks.drain(..) {
            self.uncover(need, pick.run);
            self.unclaim(pick.machine);
        }
        self.needs[need].picks = picks;
    }

    /// Gives back all that a need counts on.
    pub(crate) fn release(&mut self, need: PreparedIx) {
        let row = &mut self.needs[need];
        let (mut credits, mut picks) =
            (std::mem::take(&mut row.credits), std::mem::take(&mut row.picks));
        row.covered = bigfleet_model::Totals::zero();
        (row.looked, row.even) = (Looked::AtItsOwn, true);
        if std::mem::take(&mut row.has_gaps) {
            credits.retain(|machine| self.machines.rows[*machine].claimant == Some(need));
        }
        credits.drain(..).for_each(|machine| self.unclaim(machine));
        picks.drain(..).for_each(|pick| self.unclaim(pick.machine));
        let row = &mut self.needs[need];
        (row.credits, row.picks) = (credits, picks);
    }

    /// Whether a unit that was noted is still there to be decided, as that unit.
    pub(crate) fn is_live(&self, unit: Unit) -> bool {
        match unit {
            Unit::Need(need) => {
                let row = &self.needs[need];
                !row.removed && row.gangs.is_none()
            }
            Unit::Gangs(gangs) => !self.gangs[gangs].members.is_empty(),
        }
    }

    /// The need must be decided again.
    pub(crate) fn touch(&mut self, need: PreparedIx) {
        match self.needs[need].gangs {
            Some(gangs) => self.enqueue(Unit::Gangs(gangs)),
            None => self.enqueue(Unit::Need(need)),
        }
    }

    pub(crate) fn touch_account(&mut self, account: AccountIx) {
        let row = &self.names.accounts[account];
        for need in [row.need, row.fold].into_iter().flatten() {
            self.touch(need);
        }
    }

    /// Notes what must be decided, and gives back what it counted on but for what
    /// it is sure to count on again.
    pub(crate) fn enqueue(&mut self, unit: Unit) {
        match unit {
            Unit::Need(need) => {
                let row = &mut self.needs[need];
                if std::mem::replace(&mut row.queued, true) {
                    return;
                }
                let settled = std::mem::take(&mut row.settled);
                let keeps = row.tidy && row.even;
                let cluster = &mut self.names.clusters[row.cluster];
                let tier = self.profiles[row.profile].precedence;
                if settled {
                    cluster.end_rest(tier);
                }
                if keeps {
                    cluster.begin_rest(tier);
                    self.keep(need);
                } else {
                    self.release(need);
                }
            }
            Unit::Gangs(gangs) => {
                let row = &mut self.gangs[gangs];
                if std::mem::replace(&mut row.queued, true) {
                    return;
                }
                let settled = std::mem::take(&mut row.settled);
                let (fold, members) = (row.fold, std::mem::take(&mut row.members));
                if settled {
                    let tier = self.precedence(fold);
                    self.names.clusters[self.needs[fold].cluster].end_rest(tier);
                }
                self.release(fold);
                for member in &members {
                    // It rested as one of its group, and may leave that.
                    self.needs[*member].settled = false;
                    self.release(*member);
                }
                self.gangs[gangs].members = members;
            }
        }
        self.queue.push(unit);
    }
}
