//! Phase 2: priority inversions (§7). Closes residuals by draining machines of
//! strictly lower priority. It moves nothing: a victim drains to Idle and a later
//! Phase 1 acquires it.

mod clear;
mod marks;
mod moving;
mod score;
mod standing;
mod target;
mod victims;

use std::time::Duration;

use bigfleet_model::{
    MachineState, Totals,
    grace::{VOLUNTARY_GRACE, drain_grace, priority_gap},
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    handle::{ClassIx, DomainIx, MachineIx, PoolIx, PreparedIx, RunIx},
    input::{Phase2Options, Time},
    phase1::Spread,
    world::{Constraint, DrainEnd, World},
};

pub(crate) use marks::Marks;
use moving::Moving;
pub use score::victim_score;
pub(crate) use standing::{Standing, Worth, excess_of, release_order};
use target::Target;
use victims::{Segment, Victims};

/// A machine that is drained for a need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub(crate) machine: MachineIx,
    pub(crate) need: PreparedIx,
    /// How far the need stands above the machine's workload.
    pub(crate) gap: i64,
}

/// How a need that Phase 1 left short came out of Phase 2.
#[derive(Clone, Debug)]
pub(crate) struct Resolution {
    pub(crate) need: PreparedIx,
    pub(crate) residual: Totals,
    pub(crate) preempted: bool,
}

/// What Phase 2 decided.
#[derive(Clone, Default)]
pub(crate) struct Inversions {
    pub(crate) victims: Vec<Victim>,
    /// Of every need that Phase 1 left short, in serving order.
    pub(crate) resolutions: Vec<Resolution>,
    /// Machines on their way that needs wait for.
    pub(crate) reserved: Vec<(MachineIx, PreparedIx)>,
    /// Reserved or picked.
    taken: Marks,
    /// Picked.
    doomed: Marks,
    /// Runs of which some were picked.
    doomed_runs: Vec<RunIx>,
}

impl Inversions {
    pub(crate) fn is_victim(&self, machine: MachineIx) -> bool {
        self.doomed.contains(machine)
    }

    fn clear(&mut self, world: &mut World) {
        self.doomed_runs.drain(..).for_each(|run| world.runs[run].doomed = 0);
        self.victims.clear();
        self.reserved.clear();
        self.resolutions.clear();
        self.taken.clear();
        self.doomed.clear();
    }
}

/// Resolves the residuals of `short`, which is in serving order.
pub(crate) fn invert(
    world: &mut World,
    short: &[PreparedIx],
    standing: &mut Standing,
    options: &Phase2Options,
    now: Time,
    found: &mut Inversions,
) {
    found.clear(world);
    let mut phase = Phase2 {
        world,
        short,
        standing,
        options,
        now,
        found,
        moving: HashMap::default(),
        victims: HashMap::default(),
        unsure: Vec::new(),
        rigid: HashMap::default(),
    };
    phase.run();
}

struct Phase2<'w> {
    world: &'w mut World,
    short: &'w [PreparedIx],
    standing: &'w mut Standing,
    options: &'w Phase2Options,
    now: Time,
    found: &'w mut Inversions,
    moving: HashMap<SupplyKey, Moving, FixedState>,
    victims: HashMap<SupplyKey, Victims, FixedState>,
    /// Victims that the present need may yet let go of.
    unsure: Vec<(MachineIx, Segment)>,
    /// Pools in which nothing could ever move for a priority.
    rigid: HashMap<(PoolIx, i32), bool, FixedState>,
}

/// Pool, domain of a gang, priority of the preemptor.
type SupplyKey = (PoolIx, Option<DomainIx>, i32);

impl Phase2<'_> {
    fn run(&mut self) {
        let reserved: Vec<Vec<MachineIx>> =
            self.short.iter().map(|need| self.reserve_own(*need)).collect();
        for (&need, reserved) in self.short.iter().zip(reserved) {
            let resolution = self.resolve(need, &reserved);
            self.found.resolutions.push(resolution);
        }
    }

    /// What was preempted for this very need: otherwise a higher need would take
    /// the drain of a pickier one, which would then evict once more.
    fn reserve_own(&mut self, need: PreparedIx) -> Vec<MachineIx> {
        let row = &self.world.needs[need];
        let drains = self.world.drains_for.get(&row.account).filter(|_| !row.is_quiet());
        let Some(mut drains) = drains.cloned() else { return Vec::new() };
        drains.sort_unstable_by_key(|machine| self.world.machines.rows[*machine].label);
        let mut target = self.target(need);
        let mut reserved = Vec::new();
        for machine in drains {
            if self.may_take(&target, machine) {
                target.take(self.world, machine);
                self.found.taken.insert(machine);
                self.found.reserved.push((machine, need));
                reserved.push(machine);
            }
        }
        reserved
    }

    /// What the need wants, its spread widened by the domains of whatever could
    /// move for it.
    fn target(&self, need: PreparedIx) -> Target {
        let row = &self.world.needs[need];
        let spread = (row.constraint == Constraint::Spread).then(|| {
            let mut spread = Spread::over(self.world, need);
            for &class in &self.world.pools[row.pool].classes {
                let known = spread.knows(self.world.domain(row, class));
                if !known && self.has_movable(need, class) {
                    spread.widen(self.world, need, class);
                }
            }
            let min = spread.min();
            (spread, min)
        });
        Target::of(self.world, need, spread)
    }

    /// Whether a class has a machine that drains, is excess, or could be a victim.
    fn has_movable(&self, need: PreparedIx, class: ClassIx) -> bool {
        let world = &*self.world;
        let priority = world.priority(need);
        let class = &world.classes[class];
        let free = |machine: &MachineIx| world.machines.rows[*machine].held_back.is_none();
        if world.runs[class.unbound.draining].members.iter().any(free) {
            return true;
        }
        class.bound.iter().any(|run| {
            let row = &world.runs[*run];
            let ready = row.cluster.is_some_and(|cluster| world.names.clusters[cluster].ready);
            let known = row.stamp.is_some() || ready;
            row.members.iter().filter(|machine| free(machine)).any(|machine| {
                let machine = &world.machines.rows[*machine];
                let lower = || Worth::of(world, *run, machine.claimant).priority < Some(priority);
                machine.state == MachineState::Configured
                    && ((machine.claimant.is_none() && ready) || (known && lower()))
            })
        })
    }

    fn may_take(&self, target: &Target, machine: MachineIx) -> bool {
        let row = &self.world.machines.rows[machine];
        row.held_back.is_none()
            && !self.found.taken.contains(machine)
            && target.wants(self.world, row.class)
    }

    fn resolve(&mut self, need: PreparedIx, reserved: &[MachineIx]) -> Resolution {
        let row = &self.world.needs[need];
        let homeless = row.is_homeless();
        if row.is_quiet()
            || (reserved.is_empty() && self.is_rigid(need))
            || (homeless && !self.clear_domain(need, reserved))
        {
            let residual = self.world.needs[need].residual();
            return Resolution { need, residual, preempted: false };
        }
        let mut target = self.target(need);
        for &machine in reserved {
            // A gang counts only on its domain.
            let class = self.world.machines.rows[machine].class;
            if self.world.usable(&self.world.needs[need], class) {
                target.take(self.world, machine);
            }
        }
        let moving = self.moving(need);
        let limit = self.best_grace(&target);
        let (draining, reclaimed) = self.incoming(need, &moving, limit);
        for &machine in draining.iter().chain(reclaimed) {
            if target.residual().is_zero() {
                break;
            }
            if self.may_take(&target, machine) {
                self.found.taken.insert(machine);
                self.found.reserved.push((machine, need));
                target.take(self.world, machine);
            }
        }
        let (excess, victims) = self.take_outgoing(&mut target, &moving);
        let resolution = self.conclude(target, excess, victims);
        self.put_moving(need, moving);
        resolution
    }

    /// Whether nothing drains, is excess, or could be a victim for the need.
    fn is_rigid(&mut self, need: PreparedIx) -> bool {
        let (pool, priority) = (self.world.needs[need].pool, self.world.priority(need));
        if let Some(known) = self.rigid.get(&(pool, priority)) {
            return *known;
        }
        let world = &*self.world;
        let still = world.pools[pool].classes.iter().all(|class| {
            let class = &world.classes[*class];
            let closed = |run: &RunIx| {
                let row = &world.runs[*run];
                let ready = row.cluster.is_some_and(|cluster| world.names.clusters[cluster].ready);
                !ready || !row.has_unclaimed() || excess_of(world, *run).next().is_none()
            };
            world.runs[class.unbound.draining].members.is_empty() && class.bound.iter().all(closed)
        });
        let rigid = still && self.whole_pool_has_no_victims(need);
        self.rigid.insert((pool, priority), rigid);
        rigid
    }

    fn whole_pool_has_no_victims(&mut self, need: PreparedIx) -> bool {
        let domain = self.world.needs[need].domain.take();
        let empty = Victims::of(self.world, need, self.options).is_empty();
        self.world.needs[need].domain = domain;
        empty
    }

    fn key(&self, need: PreparedIx) -> SupplyKey {
        let row = &self.world.needs[need];
        let domain = row.domain.filter(|_| row.constraint == Constraint::Same);
        (row.pool, domain, self.world.priority(need))
    }

    /// Victims of a need, to be put back with [`Self::put`].
    fn victims(&mut self, need: PreparedIx) -> Victims {
        let key = self.key(need);
        let known = self.victims.remove(&key);
        known.unwrap_or_else(|| Victims::of(self.world, need, self.options))
    }

    fn put(&mut self, need: PreparedIx, mut victims: Victims) {
        victims.rewind();
        self.victims.insert(self.key(need), victims);
    }

    /// How far a priority stands above a machine's.
    fn gap(&self, priority: i32, machine: MachineIx) -> i64 {
        let row = &self.world.machines.rows[machine];
        let worth = row.run.map(|run| Worth::of(self.world, run, row.claimant));
        priority_gap(priority, worth.and_then(|worth| worth.priority))
    }

    /// Draining machines by id, but for those that drain for nobody at least as
    /// important and take longer than the best victim would; and excess that is
    /// reclaimed this cycle, if even that is not longer.
    fn incoming<'m>(
        &self,
        need: PreparedIx,
        moving: &'m Moving,
        limit: Option<Duration>,
    ) -> (Vec<MachineIx>, &'m [MachineIx]) {
        let priority = self.world.priority(need);
        let in_time = |machine: &MachineIx| {
            let drain = self.world.drains.get(machine);
            let above = drain.and_then(|drain| drain.preemptor_priority);
            let for_lesser = above.is_none_or(|other| other < priority);
            let remaining = drain.and_then(|drain| match drain.end {
                DrainEnd::Unknown => None,
                DrainEnd::At(deadline) => Some(deadline.since(self.now)),
                DrainEnd::After(grace) => Some(self.now.after(grace).since(self.now)),
            });
            let late = limit.zip(remaining).is_some_and(|(limit, remaining)| remaining > limit);
            !(for_lesser && late)
        };
        let soon_enough = limit.is_none_or(|limit| VOLUNTARY_GRACE <= limit);
        let draining = moving.draining.left().iter().copied().filter(in_time).collect();
        (draining, if soon_enough { moving.reclaimed.left() } else { &[] })
    }

    /// Grace that the best victim would get, if there is one.
    fn best_grace(&mut self, target: &Target) -> Option<Duration> {
        let mut victims = self.victims(target.need);
        let mut best = None;
        while let Some((machine, segment)) = victims.next(self.world) {
            if self.found.taken.contains(machine) {
                continue;
            }
            victims.pass(segment);
            if self.may_take(target, machine) {
                best = Some(machine);
                break;
            }
        }
        self.put(target.need, victims);
        let priority = self.world.priority(target.need);
        best.map(|machine| drain_grace(self.gap(priority, machine)))
    }

    /// Steps 2 and 3: excess of lower priority, then victims.
    fn take_outgoing(
        &mut self,
        target: &mut Target,
        moving: &Moving,
    ) -> (Vec<MachineIx>, Vec<MachineIx>) {
        let (mut picked_excess, mut picked) = (Vec::new(), Vec::new());
        for &machine in moving.excess.left() {
            if target.residual().is_zero() {
                break;
            }
            if self.may_take(target, machine) {
                self.doom(machine);
                target.take(self.world, machine);
                picked_excess.push(machine);
            }
        }
        let mut victims = self.victims(target.need);
        while !target.residual().is_zero()
            && let Some((machine, segment)) = victims.next(self.world)
        {
            if self.may_take(target, machine) {
                self.doom(machine);
                target.take(self.world, machine);
                picked.push(machine);
                self.unsure.push((machine, segment));
            } else if !self.found.taken.contains(machine) {
                victims.pass(segment);
            } else if self.found.doomed.contains(machine) {
                // Picked as excess, perhaps by this need, which may let go of it.
                self.unsure.push((machine, segment));
            }
        }
        self.put(target.need, victims);
        (picked_excess, picked)
    }

    fn doom(&mut self, machine: MachineIx) {
        self.found.taken.insert(machine);
        self.found.doomed.insert(machine);
        if let Some(run) = self.run_of_excess(machine) {
            let doomed = &mut self.world.runs[run].doomed;
            *doomed += 1;
            if *doomed == 1 {
                self.found.doomed_runs.push(run);
            }
        }
    }

    fn let_go(&mut self, machine: MachineIx) {
        self.found.taken.remove(machine);
        self.found.doomed.remove(machine);
        if let Some(run) = self.run_of_excess(machine) {
            self.world.runs[run].doomed -= 1;
        }
    }

    fn run_of_excess(&self, machine: MachineIx) -> Option<RunIx> {
        let row = &self.world.machines.rows[machine];
        row.run.filter(|_| row.claimant.is_none())
    }

    /// What the need let go of serves others.
    fn give_back_unsure(&mut self, need: PreparedIx) {
        let mut victims = self.victims(need);
        for (machine, segment) in self.unsure.drain(..) {
            if !self.found.taken.contains(machine) {
                victims.pass(segment);
            }
        }
        self.put(need, victims);
    }

    /// Steps 4 and 5: prune what is redundant; a gang that still cannot assemble
    /// evicts nobody.
    fn conclude(
        &mut self,
        mut target: Target,
        mut excess: Vec<MachineIx>,
        mut picked: Vec<MachineIx>,
    ) -> Resolution {
        let need = target.need;
        let row = &self.world.needs[need];
        let spans = row.constraint == Constraint::Same
            && !self.world.pools[row.pool].key.unit.covers(&row.aggregate);
        if target.residual().is_zero() {
            for picks in [&mut picked, &mut excess] {
                for place in (0..picks.len()).rev() {
                    if target.can_spare(self.world, picks[place]) {
                        let machine = picks.remove(place);
                        self.let_go(machine);
                        target.give_back(self.world, machine);
                    }
                }
            }
        } else if spans {
            for machine in excess.drain(..).chain(picked.drain(..)) {
                self.let_go(machine);
                target.give_back(self.world, machine);
            }
        }
        self.give_back_unsure(need);
        let priority = self.world.priority(need);
        for &machine in excess.iter().chain(&picked) {
            let gap = self.gap(priority, machine);
            self.found.victims.push(Victim { machine, need, gap });
        }
        Resolution {
            need,
            residual: target.residual().clone(),
            preempted: !excess.is_empty() || !picked.is_empty(),
        }
    }
}
