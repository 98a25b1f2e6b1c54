//! A gang without any creditable or acquirable machine takes a domain whose
//! incoming, lower-priority excess and victims together cover it (§7): else a full
//! fleet would never yield to a gang, whatever its priority.

use std::cmp::Reverse;

use bigfleet_model::Totals;
use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::Phase2;
use crate::{
    handle::{DomainIx, MachineIx, PreparedIx},
    phase1::{coverage, load},
};

/// More that drains for the gang, more that drains at all, a tighter fit.
type Preference = (Reverse<i128>, Reverse<i128>, i128);

impl Phase2<'_> {
    /// Chooses the domain; false if there is none.
    pub(super) fn clear_domain(&mut self, need: PreparedIx, reserved: &[MachineIx]) -> bool {
        let mut best: Option<(Preference, DomainIx)> = None;
        for domain in self.domains(need) {
            self.world.needs[need].domain = Some(domain);
            if let Some(preference) = self.judge_domain(need, reserved)
                && best.as_ref().is_none_or(|(known, _)| preference < *known)
            {
                best = Some((preference, domain));
            }
        }
        self.world.needs[need].domain = best.map(|(_, domain)| domain);
        best.is_some()
    }

    /// Domains of the classes that the gang could use, by value.
    fn domains(&self, need: PreparedIx) -> Vec<DomainIx> {
        let row = &self.world.needs[need];
        let Some(topology) = self.world.topology(row) else { return Vec::new() };
        let classes = self.world.pools[row.pool].classes.iter();
        let mut domains: Vec<DomainIx> =
            classes.filter_map(|class| topology.of_class(*class)).collect();
        domains.sort_unstable_by(|a, b| topology.order(*a, *b));
        domains.dedup();
        domains
    }

    /// How the need's present domain compares; none if it cannot cover the need.
    fn judge_domain(&mut self, need: PreparedIx, reserved: &[MachineIx]) -> Option<Preference> {
        let whole = self.target(need);
        let mut target = whole.clone();
        let mut drains: HashSet<MachineIx, FixedState> = HashSet::default();
        for &machine in reserved {
            let class = self.world.machines.rows[machine].class;
            if self.world.usable(&self.world.needs[need], class) {
                target.take(self.world, machine);
                drains.insert(machine);
            }
        }
        let moving = self.moving(need);
        let limit = self.best_grace(&target);
        let (draining, reclaimed) = self.incoming(need, &moving, limit);
        for &machine in draining.iter().chain(reclaimed) {
            if self.may_take(&whole, machine) {
                drains.insert(machine);
            }
        }
        let account = self.world.needs[need].account;
        let drains_for_it = |machine: &&MachineIx| {
            let drain = self.world.drains.get(*machine);
            drain.is_some_and(|drain| drain.preemptor == Some(account))
        };
        let for_it: HashSet<MachineIx, FixedState> =
            drains.iter().filter(drains_for_it).copied().collect();
        let mut all = drains.clone();
        let excess = moving.excess.left().iter().copied();
        all.extend(excess.filter(|machine| self.may_take(&whole, *machine)));
        self.put_moving(need, moving);
        let victims = self.victims(need);
        victims.all(self.world, |machine| {
            if self.may_take(&whole, machine) {
                all.insert(machine);
            }
        });
        self.put(need, victims);
        let sum = |machines: &HashSet<MachineIx, FixedState>| {
            let mut total = Totals::zero();
            for machine in machines {
                let class = self.world.machines.rows[*machine].class;
                total.add_assign(&self.world.classes[class].capacity);
            }
            total
        };
        let wanted = &self.world.needs[need].aggregate;
        let total = sum(&all);
        total.covers(wanted).then(|| {
            let cover = |machines| Reverse(coverage(&sum(machines), wanted));
            (cover(&for_it), cover(&drains), load(&total, wanted))
        })
    }
}
