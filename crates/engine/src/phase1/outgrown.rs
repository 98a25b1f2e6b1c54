//! Machines that a need outgrew (§6.5): one request that fits none of them takes
//! nothing from those that run there.

use bigfleet_model::{MachineState, Totals};

use super::Phase1;
use crate::{
    handle::{MachineIx, PreparedIx, RunIx},
    world::{KeepLevel, Looked, RunKind, World, lowers},
};

impl Phase1<'_> {
    /// Own bound machines that are too small for the need's unit stay its own, in keep
    /// order, as far as its Configured machines leave something open.
    pub(super) fn keep_outgrown(&mut self, need: PreparedIx) {
        let world = &*self.world;
        let row = &world.needs[need];
        let is_housed = row.is_covered() && row.unready == 0;
        if is_housed || world.names.clusters[row.cluster].open.is_empty() {
            return;
        }
        let pool = &world.pools[row.pool];
        let own = world.names.accounts[row.account].runs.iter().copied();
        let left = in_keep_order(
            world,
            own.filter(|run| {
                let run = &world.runs[*run];
                run.kind == RunKind::Bound && run.has_unclaimed() && pool.outgrew(run.class)
            }),
            |machine| world.machines.rows[machine].claimant.is_none(),
        );
        if left.is_empty() {
            return;
        }
        let mut open = open_residual(world, need);
        for (_, _, machine) in left {
            let capacity = &self.world.classes[self.world.machines.rows[machine].class].capacity;
            if lowers(&open, capacity) {
                open.sub_sat_assign(capacity);
                self.world.outgrow(machine, need);
                let row = &mut self.world.needs[need];
                if row.looked == Looked::AtItsOwn {
                    // It is asked again every cycle.
                    row.looked = Looked::Around;
                }
            }
        }
    }

    /// At the end of a tier, of those that were kept in it: what was credited since may
    /// house their needs.
    pub(super) fn let_outgrown_go(&mut self, first: usize) {
        let kept = self.world.outgrown.split_off(first);
        for of_need in kept.chunk_by(|a, b| a.1 == b.1) {
            let need = of_need[0].1;
            let mut open = open_residual(self.world, need);
            for &(machine, _) in of_need {
                let class = self.world.machines.rows[machine].class;
                let capacity = &self.world.classes[class].capacity;
                if lowers(&open, capacity) {
                    open.sub_sat_assign(capacity);
                    self.world.outgrown.push((machine, need));
                } else {
                    self.world.let_go(machine);
                }
            }
        }
    }
}

/// What the Configured machines that a need is credited with leave open.
fn open_residual(world: &World, need: PreparedIx) -> Totals {
    let row = &world.needs[need];
    if row.unready == 0 {
        return row.residual();
    }
    let mut open = row.aggregate.clone();
    for machine in &row.credits {
        let machine = &world.machines.rows[*machine];
        if machine.state == MachineState::Configured {
            open.sub_sat_assign(&world.classes[machine.class].capacity);
        }
    }
    open
}

/// Place in keep order but for the id, label, machine.
type Kept = (KeepLevel, u64, MachineIx);

/// Machines of bound runs in keep order (§2).
pub(crate) fn in_keep_order(
    world: &World,
    runs: impl Iterator<Item = RunIx>,
    wanted: impl Fn(MachineIx) -> bool,
) -> Vec<Kept> {
    let mut found: Vec<Kept> = Vec::new();
    for run in runs {
        let level = world.keep_level(run);
        let members = world.runs[run].members.iter().copied().filter(|machine| wanted(*machine));
        found.extend(members.map(|one| (level, world.machines.rows[one].label, one)));
    }
    // Stable, for runs are in order already.
    found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    found
}
