//! A fold dealt out to its members (§9): its machines in order give whole places,
//! its members in order take one each.

use bigfleet_model::MachineState;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    engine::Engine,
    handle::{MachineIx, PreparedIx},
    world::{RunKind, World},
};

/// In which order a fold's machines are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Bound,
    Creating,
    Picked,
    /// On its way: serves nobody yet.
    Reserved,
    Preempted,
}

/// A machine and the first of the places it gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dealt {
    pub(crate) machine: MachineIx,
    /// Set if it is a pick of this cycle.
    pub(crate) picked: Option<RunKind>,
    from: usize,
}

/// Which machine serves which member.
#[derive(Debug)]
pub(crate) struct Deal {
    /// By first place.
    dealt: Vec<Dealt>,
    /// Members with a place on a claimed machine.
    pub(crate) places: usize,
}

/// Machines that drain for folds, by fold.
#[derive(Default)]
pub(crate) struct Drains(HashMap<PreparedIx, Vec<(Turn, MachineIx)>, FixedState>);

impl Drains {
    pub(crate) fn of(engine: &Engine) -> Self {
        let inversions = &engine.inversions;
        let reserved =
            inversions.reserved.iter().map(|(machine, need)| (*need, Turn::Reserved, *machine));
        let preempted =
            inversions.victims.iter().map(|one| (one.need, Turn::Preempted, one.machine));
        let mut drains = Self::default();
        for (need, turn, machine) in reserved.chain(preempted) {
            if engine.world.needs[need].is_fold() {
                drains.0.entry(need).or_default().push((turn, machine));
            }
        }
        drains
    }
}

impl Deal {
    pub(crate) fn of(world: &World, fold: PreparedIx, drains: &Drains) -> Self {
        let row = &world.needs[fold];
        let rows = &world.machines.rows;
        let bound = row.credits.iter().map(|machine| {
            let creating = rows[*machine].state == MachineState::Creating;
            (if creating { Turn::Creating } else { Turn::Bound }, *machine, None)
        });
        let picked = row
            .picks
            .iter()
            .map(|pick| (Turn::Picked, pick.machine, Some(world.runs[pick.run].kind)));
        let drains = drains.0.get(&fold).into_iter().flatten();
        let mut turns: Vec<(Turn, MachineIx, Option<RunKind>)> = bound
            .chain(picked)
            .chain(drains.map(|(turn, machine)| (*turn, *machine, None)))
            .collect();
        turns.sort_unstable_by(|a, b| {
            let price = |machine: MachineIx| world.classes[rows[machine].class].price;
            a.0.cmp(&b.0)
                .then_with(|| price(a.1).total_cmp(&price(b.1)))
                .then_with(|| rows[a.1].label.cmp(&rows[b.1].label))
        });
        let pool = &world.pools[row.pool];
        let members = world.folded(row).len();
        let (mut from, mut places) = (0, 0);
        let mut dealt = Vec::with_capacity(turns.len());
        for (turn, machine, picked) in turns {
            dealt.push(Dealt { machine, picked, from });
            let units = pool.units(&world.classes[rows[machine].class].capacity);
            from = usize::try_from(units).unwrap_or(usize::MAX).saturating_add(from).min(members);
            if turn <= Turn::Picked {
                places = from;
            }
        }
        Self { dealt, places }
    }

    /// The machine that serves the member at a place, if there is one.
    pub(crate) fn serving(&self, at: usize) -> Option<&Dealt> {
        let after = self.dealt.partition_point(|dealt| dealt.from <= at);
        let served = self.dealt[..after].last();
        served.filter(|_| at < self.places)
    }

    /// The machine on which the member at a place has or will have room.
    pub(crate) fn covering(&self, world: &World, fold: PreparedIx, at: usize) -> Option<MachineIx> {
        let after = self.dealt.partition_point(|dealt| dealt.from <= at);
        let Dealt { machine, from, .. } = *self.dealt[..after].last()?;
        let pool = &world.pools[world.needs[fold].pool];
        let units = pool.units(&world.classes[world.machines.rows[machine].class].capacity);
        (units > (at - from) as i128).then_some(machine)
    }

    /// Every machine that the fold claims, waits for or preempts, with the place
    /// of the first member it serves. One that is not needed after all counts for
    /// the last.
    pub(crate) fn firsts(&self, members: usize) -> impl Iterator<Item = (MachineIx, usize)> + '_ {
        self.dealt.iter().map(move |dealt| (dealt.machine, dealt.from.min(members - 1)))
    }
}
