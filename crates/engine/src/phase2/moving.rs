//! What moves for a need without any victim: machines that drain already, and
//! excess (§7 steps 1 and 2).

use super::{Marks, Phase2, excess_of, release_order};
use crate::handle::{MachineIx, PreparedIx};

/// Machines that one pool's needs of one priority could use, in the order in
/// which they are considered. What is taken for good goes from the front.
pub(super) struct Moving {
    /// Draining, by id.
    pub(super) draining: Queue,
    /// Excess at least as important, which is reclaimed this cycle, in release
    /// order.
    pub(super) reclaimed: Queue,
    /// Less important excess, in release order.
    pub(super) excess: Queue,
}

/// A list with its head cut off.
#[derive(Default)]
pub(super) struct Queue {
    machines: Vec<MachineIx>,
    start: usize,
}

impl Queue {
    fn of(machines: Vec<MachineIx>) -> Self {
        Self { machines, start: 0 }
    }

    /// What may be left of it; some may be taken.
    pub(super) fn left(&self) -> &[MachineIx] {
        &self.machines[self.start..]
    }

    fn pass_taken(&mut self, taken: &Marks) {
        self.start += self.left().iter().take_while(|machine| taken.contains(**machine)).count();
    }
}

impl Moving {
    /// Before the next need looks.
    fn rewind(&mut self, taken: &Marks) {
        for queue in [&mut self.draining, &mut self.reclaimed, &mut self.excess] {
            queue.pass_taken(taken);
        }
    }
}

impl Phase2<'_> {
    /// What moves for a need, to be put back with [`Self::put_moving`].
    pub(super) fn moving(&mut self, need: PreparedIx) -> Moving {
        let known = self.moving.remove(&self.key(need));
        known.unwrap_or_else(|| self.find_moving(need))
    }

    pub(super) fn put_moving(&mut self, need: PreparedIx, mut moving: Moving) {
        moving.rewind(&self.found.taken);
        self.moving.insert(self.key(need), moving);
    }

    fn find_moving(&mut self, need: PreparedIx) -> Moving {
        let world = &*self.world;
        let row = &world.needs[need];
        let priority = world.priority(need);
        let (mut draining, mut reclaimed, mut excess) = (Vec::new(), Vec::new(), Vec::new());
        for &class in &world.pools[row.pool].classes {
            if !world.usable(row, class) {
                continue;
            }
            let of_class = &world.classes[class];
            draining.extend(&world.runs[of_class.unbound.draining].members);
            for &run in &of_class.bound {
                let of_run = &world.runs[run];
                let Some(cluster) = of_run.cluster.filter(|_| of_run.has_unclaimed()) else {
                    continue;
                };
                if !world.names.clusters[cluster].ready {
                    continue;
                }
                let stamp = of_run.stamp.map(|stamp| &world.names.stamps[stamp]);
                // Without a stamp it is below every priority.
                if stamp.and_then(|stamp| stamp.priority) < Some(priority) {
                    excess.extend(excess_of(world, run));
                } else if !self.standing.is_awaited(world, cluster, class) {
                    let kept = self.standing.kept_in(world, cluster);
                    reclaimed.extend(excess_of(world, run).filter(|one| !kept.contains(one)));
                }
            }
        }
        draining.sort_unstable_by_key(|machine| world.machines.rows[*machine].label);
        for machines in [&mut reclaimed, &mut excess] {
            machines.sort_unstable_by(|a, b| release_order(world, *a, *b));
        }
        Moving {
            draining: Queue::of(draining),
            reclaimed: Queue::of(reclaimed),
            excess: Queue::of(excess),
        }
    }
}
