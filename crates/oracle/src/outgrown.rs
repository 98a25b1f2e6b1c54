//! Machines that a need outgrew: they match it, and are too small for its unit
//! (§6.5, §8).

use bigfleet_model::{MachineState, Totals, order::keep_order};

use crate::cycle::Cycle;

impl Cycle<'_> {
    /// What the need's Configured claims alone leave open (§8).
    pub(crate) fn unready_residual(&self, need: usize) -> Totals {
        let mut configured = self.claims(need);
        configured.retain(|claim| self.machine(*claim).state == MachineState::Configured);
        self.residual_with(need, &configured)
    }

    /// The same, less the machines that it outgrew and still runs on.
    pub(crate) fn unhoused(&self, need: usize) -> Totals {
        let mut residual = self.unready_residual(need);
        for machine in self.all().filter(|machine| self.outgrown_by[*machine] == Some(need)) {
            residual.sub_sat_assign(&self.contribution(need, machine));
        }
        residual
    }

    /// Own bound machines that the need outgrew stay its own, in keep order, as far
    /// as its Configured claims leave something open (§6.5).
    pub(crate) fn keep_outgrown(&mut self, need: usize) {
        let prepared = &self.needs[need];
        let mut own: Vec<usize> = self
            .all()
            .filter(|machine| self.is_left(*machine))
            .filter(|machine| {
                let record = self.machine(*machine);
                record.state != MachineState::Creating
                    && prepared.owns(record)
                    && prepared.outgrew(record)
            })
            .collect();
        own.sort_by(|a, b| keep_order(self.machine(*a), self.machine(*b)));
        for machine in own {
            if self.lowers(need, machine, &self.unhoused(need)) {
                self.outgrown_by[machine] = Some(need);
            }
        }
    }

    /// At the end of its tier: what was credited since may house the need, so it lets go
    /// of what it no longer needs (§6.5).
    pub(crate) fn let_outgrown_go(&mut self, need: usize) {
        let mut outgrown: Vec<usize> =
            self.all().filter(|machine| self.outgrown_by[*machine] == Some(need)).collect();
        outgrown.sort_by(|a, b| keep_order(self.machine(*a), self.machine(*b)));
        let mut residual = self.unready_residual(need);
        for machine in outgrown {
            if self.lowers(need, machine, &residual) {
                residual.sub_sat_assign(&self.contribution(need, machine));
            } else {
                self.outgrown_by[machine] = None;
            }
        }
    }

    /// After Phase 1: what nobody has of the kinds that a need without `Same` outgrew
    /// stays, as far as it is still unhoused and only what has some of everything it
    /// lacks (§8).
    pub(crate) fn keep_what_is_left(&mut self) {
        for need in 0..self.needs.len() {
            let prepared = &self.needs[need];
            if prepared.same() {
                continue;
            }
            let mut left: Vec<usize> = self
                .all()
                .filter(|machine| self.is_left(*machine) && !self.kept.contains(machine))
                .filter(|machine| {
                    let record = self.machine(*machine);
                    record.state == MachineState::Configured
                        && record.cluster.as_ref() == Some(&prepared.cluster)
                        && prepared.outgrew(record)
                })
                .collect();
            left.sort_by(|a, b| keep_order(self.machine(*a), self.machine(*b)));
            let mut residual = self.unhoused(need);
            for machine in left {
                let capacity = self.contribution(need, machine);
                if !residual.is_zero() && capacity.spans(&residual) {
                    residual.sub_sat_assign(&capacity);
                    self.kept.insert(machine);
                }
            }
        }
    }
}
