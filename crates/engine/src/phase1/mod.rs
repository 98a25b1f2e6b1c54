//! Phase 1: assignment (§6). One pass over tiers from the highest to the lowest.
//! Claims are exclusive and take whole machines.

mod acquire;
mod credit;
mod domain;
mod fold;
mod prepared;
mod share;
mod spread;

use hashbrown::HashSet;

use crate::world::{Key, World};

pub(crate) use acquire::Used;
pub(crate) use credit::Reach;
pub(crate) use prepared::{Constraint, Pick, Prepared, lowers};
pub(crate) use share::{coverage, load};
pub(crate) use spread::Spread;

/// Demand meets supply.
pub(crate) struct Phase1<'w, 'a> {
    pub(crate) world: &'w mut World<'a>,
    /// (cluster, identity) of the needs of the present tier that own machines.
    owners: HashSet<(usize, Key), foldhash::fast::FixedState>,
}

/// Assigns, and returns the prepared needs in serving order.
pub(crate) fn assign(world: &mut World<'_>) -> Vec<Prepared> {
    let tiers = world.needs.last().map_or(0, |row| row.tier + 1);
    let mut phase = Phase1 { world, owners: HashSet::default() };
    let mut prepared = Vec::with_capacity(phase.world.needs.len());
    let mut start = 0;
    for tier in 0..tiers {
        let len = phase.world.needs[start..].iter().take_while(|row| row.tier == tier).count();
        prepared.extend(phase.serve_tier(start..start + len));
        start += len;
    }
    phase.credit_held(&mut prepared);
    prepared
}

impl Phase1<'_, '_> {
    fn serve_tier(&mut self, rows: std::ops::Range<usize>) -> Vec<Prepared> {
        let needs: Vec<usize> = rows.collect();
        self.owners.clear();
        for &number in &needs {
            let row = &self.world.needs[number];
            if !self.world.need(number).aggregate.is_zero() {
                self.owners.insert((row.cluster, row.key));
            }
        }
        // A: folded classes, then gangs, credit bound supply.
        let (folds, mut used) = self.fold(&needs);
        let folded: HashSet<usize, foldhash::fast::FixedState> =
            folds.iter().flat_map(|fold| fold.members.iter().copied()).collect();
        let unfolded = needs.iter().filter(|number| !folded.contains(*number));
        let mut tier: Vec<Prepared> =
            folds.into_iter().chain(unfolded.map(|number| self.prepare(*number))).collect();
        tier.sort_by(|a, b| self.serving_order(a, b));
        // Inside a step the most constrained go first.
        let mut order: Vec<usize> = (0..tier.len()).collect();
        order.sort_by_key(|at| (tier[*at].constraint, tier[*at].turn));
        let of = |wanted: fn(&Prepared) -> bool| -> Vec<usize> {
            order.iter().copied().filter(|at| wanted(&tier[*at])).collect()
        };
        let gangs = of(|need| need.constraint == Constraint::Same);
        let others = of(|need| need.constraint >= Constraint::Spread);
        let active = of(|need| !need.is_quiet());

        for at in gangs {
            let need = &mut tier[at];
            let reach = Reach::at_first(need.is_quiet());
            self.choose_domain(need, reach, &used);
            if need.is_homeless() {
                continue;
            }
            self.credit(need, reach);
            if !need.is_quiet() {
                acquire::plan(self.world, need, &used).use_up(&mut used);
            }
        }
        // B: spread and plain needs credit, then everybody takes what is left.
        for at in others {
            let need = &mut tier[at];
            self.credit(need, Reach::at_first(need.is_quiet()));
        }
        for &at in &active {
            let need = &mut tier[at];
            if need.is_homeless() {
                self.choose_domain(need, Reach::All, &used);
            }
            self.credit(need, Reach::All);
        }
        // C: everybody acquires.
        for at in active {
            let need = &mut tier[at];
            if !need.is_homeless() && !need.residual().is_zero() {
                self.acquire(need);
            }
        }
        tier
    }

    /// A need as its cluster sent it.
    fn prepare(&self, number: usize) -> Prepared {
        let row = &self.world.needs[number];
        let need = self.world.need(number);
        let profile = self.world.profiles.row(row.profile);
        let constraint = if profile.is_gang() {
            Constraint::Same
        } else if profile.has_spread() {
            Constraint::Spread
        } else {
            Constraint::Plain
        };
        Prepared {
            members: vec![number],
            constraint,
            turn: number,
            cluster: row.cluster,
            profile: row.profile,
            identity: Some(row.key),
            own: vec![row.key],
            arrival: need.arrival,
            aggregate: need.aggregate.clone(),
            unit: need.min_unit.scale(1),
            parked: row.is_parked(),
            held: row.held,
            ..Prepared::default()
        }
    }

    /// The total order, inside one tier.
    fn serving_order(&self, a: &Prepared, b: &Prepared) -> std::cmp::Ordering {
        let world = &self.world;
        a.arrival
            .cmp(&b.arrival)
            .then_with(|| a.cluster.cmp(&b.cluster))
            .then_with(|| world.fingerprint(a.profile).cmp(world.fingerprint(b.profile)))
            .then_with(|| group(world, a).cmp(group(world, b)))
            .then_with(|| a.aggregate.cmp_by_name(&b.aggregate))
    }

    /// After the last tier each held need still short is credited with what nobody
    /// in its cluster claimed (§4.3): surplus that serves it stays.
    fn credit_held(&mut self, prepared: &mut [Prepared]) {
        for need in prepared {
            if need.held.is_none() || need.parked || need.residual().is_zero() {
                continue;
            }
            if need.is_homeless() {
                self.choose_domain(need, Reach::All, &Used::new());
            }
            self.credit(need, Reach::All);
        }
    }
}

/// Text of a need's group.
pub(crate) fn group<'n>(world: &'n World<'_>, need: &'n Prepared) -> &'n str {
    if need.is_fold() { &need.fold_group } else { &world.need(need.members[0]).group }
}
