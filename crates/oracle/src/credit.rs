//! Credit of bound supply (§6.1) and of own purchases under way (§6.2).

use std::cmp::Ordering;

use bigfleet_model::{MachineState, order::keep_order};

use crate::{cycle::Cycle, spread::skew};

/// Which machines beside its own a need may count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    /// None: the need is quiet (§4.1, §4.3).
    Nothing,
    /// Those that no other need of the tier owns.
    Unowned,
    /// All that is left, once every owner has chosen.
    Everything,
}

impl Free {
    /// Before the end of step B: quiet needs credit only their own machines.
    pub(crate) fn at_first(quiet: bool) -> Self {
        if quiet { Self::Nothing } else { Self::Unowned }
    }
}

impl Cycle<'_> {
    /// Owned by another need of the tier with a non-zero aggregate (§6.1). A gang
    /// folded into `need` is not another.
    pub(crate) fn owned_by_tier_mate(&self, tier: &[usize], need: usize, machine: usize) -> bool {
        tier.iter().any(|mate| {
            let other = &self.needs[*mate];
            *mate != need
                && !other.aggregate.is_zero()
                && !self.needs[need].members.contains(&other.key())
                && other.owns(self.machine(machine))
        })
    }

    /// Own creditable machines in walk order, wherever they lie.
    pub(crate) fn own(&self, need: usize) -> Vec<usize> {
        let mut own = self.creditable(need);
        own.retain(|machine| self.needs[need].owns(self.machine(*machine)));
        own.sort_by(|a, b| self.walk_order(*a, *b));
        own
    }

    /// Free creditable machines in walk order, wherever they lie.
    pub(crate) fn free(&self, tier: &[usize], need: usize, free: Free) -> Vec<usize> {
        let mut machines = self.creditable(need);
        machines.retain(|machine| {
            !self.needs[need].owns(self.machine(*machine))
                && match free {
                    Free::Nothing => false,
                    Free::Unowned => !self.owned_by_tier_mate(tier, need, *machine),
                    Free::Everything => true,
                }
        });
        machines.sort_by(|a, b| self.walk_order(*a, *b));
        machines
    }

    /// Bound before Creating, then keep order (§6.1).
    fn walk_order(&self, a: usize, b: usize) -> Ordering {
        let creating = |machine: usize| self.machine(machine).state == MachineState::Creating;
        creating(a).cmp(&creating(b)).then_with(|| keep_order(self.machine(a), self.machine(b)))
    }

    /// The walk of §6.1: own first, then free; a gang inside its domain, and one
    /// without a domain credits nothing (§6.3).
    pub(crate) fn credit(&mut self, tier: &[usize], need: usize, free: Free) {
        let inside = |cycle: &Self, machine: usize| {
            let prepared = &cycle.needs[need];
            prepared.within(prepared.domain.as_ref(), cycle.machine(machine))
        };
        for machine in self.own(need) {
            let residual = self.residual(need);
            if inside(self, machine) && self.lowers(need, machine, &residual) {
                self.claimed_by[machine] = Some(need);
            }
        }
        let mut took_free = false;
        for machine in self.free(tier, need, free) {
            let residual = self.residual(need);
            if inside(self, machine)
                && self.lowers(need, machine, &residual)
                && self.admissible_for_credit(need, machine)
            {
                self.claimed_by[machine] = Some(need);
                took_free = true;
            }
        }
        if took_free {
            self.give_back(need);
        }
    }

    /// A hard spread takes free machines only from admissible domains; for that
    /// also what is creditable names domains (§6.1, §6.4).
    fn admissible_for_credit(&self, need: usize, machine: usize) -> bool {
        if self.needs[need].spread().is_none() {
            return true;
        }
        let mut others = self.acquirable(need);
        others.extend(self.creditable(need));
        let counts = self.spread_counts(need, &self.claims(need), &others);
        self.admissible(need, machine, &counts)
    }

    /// Walks all claims by (Creating last, price, ID) and gives back what comes
    /// after the point of coverage (§6.1).
    fn give_back(&mut self, need: usize) {
        let mut claims = self.claims(need);
        claims.sort_by(|a, b| {
            let creating = |machine: usize| self.machine(machine).state == MachineState::Creating;
            creating(*a)
                .cmp(&creating(*b))
                .then_with(|| self.price(*a).total_cmp(&self.price(*b)))
                .then_with(|| self.machine(*a).id.cmp(&self.machine(*b).id))
        });
        let mut residual = self.needs[need].aggregate.clone();
        for machine in claims {
            if residual.is_zero() {
                self.claimed_by[machine] = None;
            } else {
                residual.sub_sat_assign(&self.contribution(need, machine));
            }
        }
    }

    /// After acquiring: walks all claims as the next cycle will, and gives back bound
    /// ones that this walk does not keep and that the bound ones it keeps do not
    /// miss (§6.1).
    pub(crate) fn shed(&mut self, need: usize) {
        if !self.residual(need).is_zero() {
            return;
        }
        let mut claims = self.claims(need);
        let late = |machine: usize| {
            let state = self.machine(machine).state;
            matches!(state, MachineState::Creating | MachineState::Speculative)
        };
        claims.sort_by(|a, b| {
            late(*a)
                .cmp(&late(*b))
                .then_with(|| self.price(*a).total_cmp(&self.price(*b)))
                .then_with(|| self.machine(*a).id.cmp(&self.machine(*b).id))
        });
        let (mut kept, mut passed) = (Vec::new(), Vec::new());
        for machine in claims {
            let residual = self.residual_with(need, &kept);
            let keeps = self.lowers(need, machine, &residual);
            if keeps { kept.push(machine) } else { passed.push(machine) }
        }
        let bound = |machine: &usize| {
            let state = self.machine(*machine).state;
            matches!(state, MachineState::Configured | MachineState::Configuring)
        };
        let serving: Vec<usize> = kept.iter().copied().filter(bound).collect();
        let missing = self.residual_with(need, &serving);
        passed.retain(|machine| {
            bound(machine)
                && !self.lowers(need, *machine, &missing)
                && !self.balances(need, *machine, &kept)
        });
        for machine in passed {
            self.claimed_by[machine] = None;
        }
    }

    /// At the end of its tier: a covered need with a hard spread claims what of its own
    /// bound machines nobody claimed and keeps it in balance (§6.1).
    pub(crate) fn balance(&mut self, need: usize) {
        if self.needs[need].spread().is_none() || !self.residual(need).is_zero() {
            return;
        }
        let mut own = self.own(need);
        own.retain(|machine| self.machine(*machine).state != MachineState::Creating);
        let together = [self.claims(need), own.clone()].concat();
        if skew(&self.spread_counts(need, &together, &[])) > self.max_skew(need) {
            return;
        }
        for machine in own {
            if self.balances(need, machine, &self.claims(need)) {
                self.claimed_by[machine] = Some(need);
            }
        }
    }

    /// The machine's domain has more than `max_skew` fewer of these machines than
    /// the fullest.
    fn balances(&self, need: usize, machine: usize, among: &[usize]) -> bool {
        let Some(value) = self.spread_value(need, machine) else { return false };
        let counts = self.spread_counts(need, among, &[]);
        let fullest = counts.values().copied().max().unwrap_or(0);
        counts.get(value).copied().unwrap_or(0) + self.max_skew(need) < fullest
    }
}
