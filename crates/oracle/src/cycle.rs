//! The machines, the needs, and who claims what: all state there is.

use std::collections::BTreeSet;

use bigfleet_engine::{CycleInput, Tracked};
use bigfleet_model::{Machine, MachineState, Totals, cost::effective_cost};

use crate::{
    need::{Prepared, lowers},
    overlay,
};

/// One cycle under way. Machines and needs are named by their index.
pub(crate) struct Cycle<'a> {
    pub(crate) input: &'a CycleInput,
    /// By id, after the overlay (§3).
    pub(crate) machines: Vec<Tracked>,
    pub(crate) needs: Vec<Prepared>,
    /// Claims are exclusive and whole-machine (§6).
    pub(crate) claimed_by: Vec<Option<usize>>,
    /// Which need outgrew a machine that it still runs on (§6.5).
    pub(crate) outgrown_by: Vec<Option<usize>>,
    /// Machines that are kept for a need that outgrew their kind (§8).
    pub(crate) kept: BTreeSet<usize>,
}

impl<'a> Cycle<'a> {
    pub(crate) fn new(input: &'a CycleInput) -> Self {
        let machines = overlay::overlay(input);
        let nobody = vec![None; machines.len()];
        Self {
            input,
            machines,
            needs: Vec::new(),
            claimed_by: nobody.clone(),
            outgrown_by: nobody,
            kept: BTreeSet::new(),
        }
    }

    pub(crate) fn machine(&self, machine: usize) -> &Machine {
        &self.machines[machine].machine
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.machines.len()
    }

    pub(crate) fn claims(&self, need: usize) -> Vec<usize> {
        self.all().filter(|machine| self.claimed_by[*machine] == Some(need)).collect()
    }

    /// Nobody claims the machine, and nobody who outgrew it still runs on it.
    pub(crate) fn is_left(&self, machine: usize) -> bool {
        self.claimed_by[machine].is_none() && self.outgrown_by[machine].is_none()
    }

    pub(crate) fn contribution(&self, need: usize, machine: usize) -> Totals {
        self.needs[need].contribution(self.machine(machine))
    }

    /// What the need still misses with these machines (§6.1).
    pub(crate) fn residual_with(&self, need: usize, machines: &[usize]) -> Totals {
        let mut residual = self.needs[need].aggregate.clone();
        for machine in machines {
            residual.sub_sat_assign(&self.contribution(need, *machine));
        }
        residual
    }

    /// What the need still misses with its claims.
    pub(crate) fn residual(&self, need: usize) -> Totals {
        self.residual_with(need, &self.claims(need))
    }

    pub(crate) fn usable(&self, need: usize, machine: usize) -> bool {
        self.needs[need].usable(self.machine(machine))
    }

    pub(crate) fn lowers(&self, need: usize, machine: usize, residual: &Totals) -> bool {
        lowers(residual, &self.contribution(need, machine))
    }

    pub(crate) fn price(&self, machine: usize) -> f64 {
        self.machine(machine).class.price_per_hour
    }

    /// §2.
    pub(crate) fn effective_cost(&self, need: usize, machine: usize) -> f64 {
        let class = &self.machine(machine).class;
        effective_cost(
            class.price_per_hour,
            class.interruption_probability,
            self.needs[need].profile.interruption().dollars(),
        )
    }

    pub(crate) fn held_back(&self, machine: usize) -> bool {
        self.input.held_back.contains_key(&self.machine(machine).id)
    }

    /// Idle, unstamped Creating or Speculative (§6.4), whether claimed or not.
    pub(crate) fn acquirable_state(&self, machine: usize) -> bool {
        let machine = self.machine(machine);
        match machine.state {
            MachineState::Idle | MachineState::Speculative => true,
            MachineState::Creating => machine.stamp.is_none(),
            _ => false,
        }
    }

    /// Unclaimed usable machines of the three states, not held back, with the key
    /// of an enforced spread; in the domain of a gang (§6.4, §4.3). Whether they
    /// lower the residual is asked where it matters.
    pub(crate) fn acquirable(&self, need: usize) -> Vec<usize> {
        let prepared = &self.needs[need];
        self.all()
            .filter(|machine| self.is_left(*machine))
            .filter(|machine| self.acquirable_state(*machine) && !self.held_back(*machine))
            .filter(|machine| self.usable(need, *machine))
            .filter(|machine| {
                prepared.spread().is_none() || self.spread_value(need, *machine).is_some()
            })
            .collect()
    }

    /// Creditable (§6.1): unclaimed usable machines of the need's cluster,
    /// Configured or Configuring, plus own Creating.
    pub(crate) fn creditable(&self, need: usize) -> Vec<usize> {
        let prepared = &self.needs[need];
        self.all()
            .filter(|machine| self.is_left(*machine))
            .filter(|machine| {
                let machine = self.machine(*machine);
                match machine.state {
                    MachineState::Configured | MachineState::Configuring => {
                        machine.cluster.as_ref() == Some(&prepared.cluster)
                    }
                    MachineState::Creating => prepared.owns(machine),
                    _ => false,
                }
            })
            .filter(|machine| self.usable(need, *machine))
            .collect()
    }
}
