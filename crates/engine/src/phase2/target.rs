//! What a need still wants from Phase 2.

use bigfleet_model::Totals;

use crate::{
    handle::{ClassIx, MachineIx, PreparedIx},
    phase1::Spread,
    world::{World, lowers},
};

/// Residual and spread of one need while machines are reserved and picked.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) need: PreparedIx,
    covered: Totals,
    residual: Totals,
    /// Counts, and the least count of claims alone: then each freed machine is
    /// admissible in whatever order they arrive.
    spread: Option<(Spread, u32)>,
}

impl Target {
    pub(super) fn of(world: &World, need: PreparedIx, spread: Option<(Spread, u32)>) -> Self {
        let row = &world.needs[need];
        Self { need, covered: row.covered.clone(), residual: row.residual(), spread }
    }

    pub(super) fn residual(&self) -> &Totals {
        &self.residual
    }

    /// Usable, lowers the residual, and keeps the spread.
    pub(super) fn wants(&self, world: &World, class: ClassIx) -> bool {
        let row = &world.needs[self.need];
        if !world.usable(row, class) {
            return false;
        }
        let capacity = &world.classes[class].capacity;
        lowers(&self.residual, world.pools[row.pool].contribution(capacity).as_ref())
            && self
                .spread
                .as_ref()
                .is_none_or(|(spread, min)| spread.admits_above(world.domain(row, class), *min))
    }

    pub(super) fn take(&mut self, world: &World, machine: MachineIx) {
        let row = &world.needs[self.need];
        let class = world.machines.rows[machine].class;
        let capacity = &world.classes[class].capacity;
        self.covered.add_assign(world.pools[row.pool].contribution(capacity).as_ref());
        self.residual = row.aggregate.sub_sat(&self.covered);
        if let Some((spread, _)) = &mut self.spread {
            spread.add(world.domain(row, class));
        }
    }

    pub(super) fn can_spare(&self, world: &World, machine: MachineIx) -> bool {
        let row = &world.needs[self.need];
        let capacity = &world.classes[world.machines.rows[machine].class].capacity;
        let contribution = world.pools[row.pool].contribution(capacity);
        self.covered.sub_sat(contribution.as_ref()).covers(&row.aggregate)
    }

    pub(super) fn give_back(&mut self, world: &World, machine: MachineIx) {
        let row = &world.needs[self.need];
        let class = world.machines.rows[machine].class;
        let capacity = &world.classes[class].capacity;
        self.covered.sub_sat_assign(world.pools[row.pool].contribution(capacity).as_ref());
        self.residual = row.aggregate.sub_sat(&self.covered);
        if let Some((spread, _)) = &mut self.spread {
            spread.remove(world.domain(row, class));
        }
    }
}
