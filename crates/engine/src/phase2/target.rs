//! What a need still wants from Phase 2.

use bigfleet_model::Totals;

use super::Standing;
use crate::{
    phase1::{Constraint, Prepared, Spread, lowers},
    world::World,
};

/// Residual and spread of one need while machines are reserved and picked.
pub(super) struct Target {
    aggregate: Totals,
    covered: Totals,
    usable: Vec<bool>,
    /// Counts, and the least count of claims alone: then each freed machine is
    /// admissible in whatever order they arrive.
    spread: Option<(Spread, u32)>,
    contributions: Vec<Totals>,
}

impl Target {
    pub(super) fn of(world: &World<'_>, need: &Prepared, standing: &Standing) -> Self {
        let classes = 0..world.classes.len();
        let usable: Vec<bool> = classes.clone().map(|class| need.usable(world, class)).collect();
        let contributions =
            classes.map(|class| need.contribution(world.capacity(class)).into_owned()).collect();
        let spread = (need.constraint == Constraint::Spread).then(|| {
            let mut spread = Spread::over(world, need, &[]);
            for machine in standing.movable(world, need) {
                let row = &world.machines[machine];
                if usable[row.class] && row.held_back.is_none() {
                    spread.widen(row.class);
                }
            }
            let min = spread.min();
            (spread, min)
        });
        Self {
            aggregate: need.aggregate.clone(),
            covered: need.covered.clone(),
            usable,
            spread,
            contributions,
        }
    }

    pub(super) fn residual(&self) -> Totals {
        self.aggregate.sub_sat(&self.covered)
    }

    /// Usable, lowers the residual, and keeps the spread.
    pub(super) fn wants(&self, class: usize) -> bool {
        self.usable[class]
            && lowers(&self.residual(), &self.contributions[class])
            && self.spread.as_ref().is_none_or(|(spread, min)| spread.admits_above(class, *min))
    }

    pub(super) fn take(&mut self, world: &World<'_>, machine: usize) {
        let class = world.machines[machine].class;
        self.covered.add_assign(&self.contributions[class]);
        if let Some((spread, _)) = &mut self.spread {
            spread.add(class);
        }
    }

    pub(super) fn can_spare(&self, world: &World<'_>, machine: usize) -> bool {
        let class = world.machines[machine].class;
        self.covered.sub_sat(&self.contributions[class]).covers(&self.aggregate)
    }

    pub(super) fn give_back(&mut self, world: &World<'_>, machine: usize) {
        let class = world.machines[machine].class;
        self.covered.sub_sat_assign(&self.contributions[class]);
        if let Some((spread, _)) = &mut self.spread {
            spread.remove(class);
        }
    }
}
