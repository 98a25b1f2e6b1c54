//! Acquisition: ranking, picks, trim, runner-up (§6.4, §10).

use std::{cmp::Ordering, collections::BTreeSet};

use bigfleet_model::{Dimension, MachineState, Totals};

use crate::{
    cycle::Cycle,
    share::{load, share, whole_share},
    spread::skew,
};

/// One machine taken by acquisition.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    pub(crate) machine: usize,
    /// Effective cost for the need.
    pub(crate) cost: f64,
    /// What the same share would have cost on another class (§10).
    pub(crate) runner_up: Option<f64>,
}

/// What acquisition would take.
#[derive(Debug, Default)]
pub(crate) struct Picks {
    pub(crate) picks: Vec<Pick>,
    /// Candidates remained, but none in an admissible domain (§9).
    pub(crate) spread_stopped: bool,
}

impl Picks {
    pub(crate) fn machines(&self) -> Vec<usize> {
        self.picks.iter().map(|pick| pick.machine).collect()
    }
}

/// By what a candidate ranks (§6.4).
struct Ranked {
    machine: usize,
    state: u8,
    cost_per_share: f64,
    unasked: usize,
    /// Smaller first; counts only at cost 0.
    fit: (bool, i128),
    cost: f64,
    price: f64,
    share: f64,
}

/// Idle, then unstamped Creating, then Speculative (§6.4).
pub(crate) fn state_rank(state: MachineState) -> u8 {
    match state {
        MachineState::Idle => 0,
        MachineState::Creating => 1,
        _ => 2,
    }
}

impl Cycle<'_> {
    /// The picks for what the need misses, trim included, without the machines in
    /// `used` (§6.4).
    pub(crate) fn picks(&self, need: usize, used: &BTreeSet<usize>) -> Picks {
        let mut result = Picks::default();
        let mut pool = self.acquirable(need);
        pool.retain(|machine| {
            let prepared = &self.needs[need];
            !used.contains(machine)
                && prepared.within(prepared.domain.as_ref(), self.machine(*machine))
        });
        let claims = self.claims(need);
        loop {
            let mut taken = claims.clone();
            taken.extend(result.machines());
            let residual = self.residual_with(need, &taken);
            let mut candidates = pool.clone();
            candidates.retain(|machine| {
                !taken.contains(machine) && self.lowers(need, *machine, &residual)
            });
            if candidates.is_empty() {
                break;
            }
            let counts = self.spread_counts(need, &taken, &pool);
            candidates.retain(|machine| self.admissible(need, *machine, &counts));
            if candidates.is_empty() {
                result.spread_stopped = true;
                break;
            }
            result.picks.push(self.head(need, &candidates, &residual));
        }
        self.trim(need, &claims, &pool, &mut result.picks);
        result
    }

    /// Ranks the candidates against the residual; the first is the pick, the
    /// first of another class the runner-up (§6.4, §10).
    fn head(&self, need: usize, candidates: &[usize], residual: &Totals) -> Pick {
        let mut ranking: Vec<Ranked> =
            candidates.iter().map(|machine| self.rank(need, *machine, residual)).collect();
        ranking.sort_by(|a, b| self.compare(a, b));
        let first = &ranking[0];
        let runner_up = ranking
            .iter()
            .find(|other| !self.same_class(first.machine, other.machine))
            .map(|other| other.cost_per_share * first.share)
            .filter(|cost| cost.is_finite());
        Pick { machine: first.machine, cost: first.cost, runner_up }
    }

    fn rank(&self, need: usize, machine: usize, residual: &Totals) -> Ranked {
        let contribution = self.contribution(need, machine);
        let share = share(&contribution, residual);
        let cost = self.effective_cost(need, machine);
        let cost_per_share = if share == 0.0 { f64::INFINITY } else { cost / share };
        // First machines that cover R alone, smaller load first; then the others,
        // larger share first.
        let fit = if contribution.covers(residual) {
            (false, load(&contribution, residual))
        } else {
            (true, -whole_share(&contribution, residual))
        };
        Ranked {
            machine,
            state: state_rank(self.machine(machine).state),
            cost_per_share,
            unasked: self.unasked_scarce(need, machine),
            fit,
            cost,
            price: self.price(machine),
            share,
        }
    }

    fn compare(&self, a: &Ranked, b: &Ranked) -> Ordering {
        a.state
            .cmp(&b.state)
            .then_with(|| a.cost_per_share.total_cmp(&b.cost_per_share))
            .then_with(|| a.unasked.cmp(&b.unasked))
            .then_with(|| if a.cost_per_share == 0.0 { a.fit.cmp(&b.fit) } else { Ordering::Equal })
            .then_with(|| a.cost.total_cmp(&b.cost))
            .then_with(|| a.price.total_cmp(&b.price))
            .then_with(|| self.machine(a.machine).id.cmp(&self.machine(b.machine).id))
    }

    /// Positive dimensions of the machine beyond the ordinary ones that neither
    /// aggregate nor `min_unit` asks for (§6.4).
    fn unasked_scarce(&self, need: usize, machine: usize) -> usize {
        let prepared = &self.needs[need];
        let ordinary = |dimension: Dimension| {
            let name = dimension.name();
            matches!(name, "cpu" | "memory" | "ephemeral-storage" | "pods")
                || name.starts_with("hugepages-")
        };
        self.machine(machine)
            .class
            .capacity()
            .iter()
            .filter(|(dimension, _)| {
                !ordinary(*dimension)
                    && prepared.aggregate.get(*dimension) == 0
                    && prepared.min_unit.get(*dimension) == 0
            })
            .count()
    }

    /// Of one *class*: state, instance type, zone, capacity type, labels,
    /// capacity, price and probability agree (§10).
    fn same_class(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.machine(a), self.machine(b));
        a.state == b.state
            && a.class.instance_type == b.class.instance_type
            && a.class.zone == b.class.zone
            && a.class.capacity_type == b.class.capacity_type
            && a.class.labels == b.class.labels
            && a.class.capacity() == b.class.capacity()
            && a.class.price_per_hour == b.class.price_per_hour
            && a.class.interruption_probability == b.class.interruption_probability
    }

    /// If the need is covered, drops picks it does not miss: Speculative first,
    /// then unstamped Creating, then Idle, each dearest first (§6.4).
    fn trim(&self, need: usize, claims: &[usize], pool: &[usize], picks: &mut Vec<Pick>) {
        let with = |picks: &[Pick]| {
            let mut machines = claims.to_vec();
            machines.extend(picks.iter().map(|pick| pick.machine));
            machines
        };
        if !self.residual_with(need, &with(picks)).is_zero() {
            return;
        }
        let skew_with = |machines: &[usize]| skew(&self.spread_counts(need, machines, pool));
        let allowed = self.max_skew(need).max(skew_with(claims));
        let mut order: Vec<usize> = picks.iter().map(|pick| pick.machine).collect();
        order.sort_by(|a, b| {
            let state = |machine: usize| state_rank(self.machine(machine).state);
            let cost = |machine: usize| self.effective_cost(need, machine);
            state(*b)
                .cmp(&state(*a))
                .then_with(|| cost(*b).total_cmp(&cost(*a)))
                .then_with(|| self.price(*b).total_cmp(&self.price(*a)))
                .then_with(|| self.machine(*b).id.cmp(&self.machine(*a).id))
        });
        loop {
            let before = picks.len();
            for machine in order.iter().copied() {
                let mut without = picks.clone();
                without.retain(|pick| pick.machine != machine);
                let machines = with(&without);
                let fits_spread =
                    self.needs[need].spread().is_none() || skew_with(&machines) <= allowed;
                if self.residual_with(need, &machines).is_zero() && fits_spread {
                    *picks = without;
                }
            }
            if picks.len() == before {
                return;
            }
        }
    }
}
