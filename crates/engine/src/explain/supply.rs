//! What supply there is for a need, by state and by what stands in its way (§9).

use bigfleet_model::MachineState;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    handle::{ClassIx, ClusterIx, Column, PreparedIx},
    input::NeedKey,
    reader::Reader,
    world::World,
};

/// Usable machines by state. Each count stops at [`Supply::CAP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    counts: [u32; STATES],
}

impl Supply {
    /// No count goes beyond it: who asks wants to know whether there is supply.
    pub const CAP: u32 = 1_000;

    /// Usable machines in a state.
    pub const fn in_state(&self, state: MachineState) -> u32 {
        let count = self.counts[state as usize];
        if count < Self::CAP { count } else { Self::CAP }
    }

    /// Some count stopped short of the truth.
    pub fn is_capped(&self) -> bool {
        self.counts.iter().any(|count| *count > Self::CAP)
    }
}

/// Every machine of the shard, sorted by what it is to a need. States are those
/// that pending actions lead to. All from `bound_here` to `failed` add up to
/// `usable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Funnel {
    /// Requirements hold.
    pub matching: u32,
    /// The unit fits, too.
    pub usable: u32,
    /// Configured or Configuring for its own cluster.
    pub bound_here: u32,
    /// Configured or Configuring for another cluster.
    pub bound_elsewhere: u32,
    /// Idle or Speculative, but not acquirable now.
    pub held_back: u32,
    /// Idle or Speculative and acquired this cycle, by whomever.
    pub taken: u32,
    /// Idle, and nobody's.
    pub idle_free: u32,
    /// Speculative, and nobody's.
    pub speculative_free: u32,
    /// Creating, Draining or Deleting.
    pub in_transition: u32,
    /// Failed.
    pub failed: u32,
    /// Machines that it counts on, in any state.
    pub claimed: u32,
}

impl Funnel {
    /// What the usable machines are split into.
    pub const fn split(&self) -> u32 {
        self.bound_here
            + self.bound_elsewhere
            + self.held_back
            + self.taken
            + self.idle_free
            + self.speculative_free
            + self.in_transition
            + self.failed
    }
}

/// States are numbered from 1.
const STATES: usize = MachineState::Failed as usize + 1;

/// Machines of one class.
#[derive(Clone, Default)]
pub(crate) struct ClassTally {
    states: [u32; STATES],
    held_back: u32,
    taken: u32,
    idle_free: u32,
    speculative_free: u32,
}

/// Machines of all classes, counted in one pass.
pub(crate) struct Tally {
    classes: Column<ClassIx, ClassTally>,
    bound: HashMap<(ClassIx, ClusterIx), u32, FixedState>,
}

impl Tally {
    pub(crate) fn of(world: &World) -> Self {
        let mut classes: Column<ClassIx, ClassTally> = Column::default();
        for _ in world.classes.handles() {
            classes.push(ClassTally::default());
        }
        let mut bound: HashMap<(ClassIx, ClusterIx), u32, FixedState> = HashMap::default();
        for (_, row) in world.machines.rows.iter().filter(|(_, row)| !row.removed) {
            let of_class = &mut classes[row.class];
            of_class.states[row.state as usize] += 1;
            match (row.state, row.cluster) {
                (MachineState::Configured | MachineState::Configuring, Some(cluster)) => {
                    *bound.entry((row.class, cluster)).or_default() += 1;
                }
                (MachineState::Idle | MachineState::Speculative, _) => {
                    let of_kind = if row.held_back.is_some() {
                        &mut of_class.held_back
                    } else if row.claimant.is_some() {
                        &mut of_class.taken
                    } else if row.state == MachineState::Idle {
                        &mut of_class.idle_free
                    } else {
                        &mut of_class.speculative_free
                    };
                    *of_kind += 1;
                }
                _ => {}
            }
        }
        Self { classes, bound }
    }
}

impl Reader<'_> {
    /// Usable machines for a need, by state.
    pub fn supply(&self, need: &NeedKey) -> Option<Supply> {
        self.engine.as_sent(need).map(|need| self.supply_of(need))
    }

    pub(crate) fn supply_of(&self, need: PreparedIx) -> Supply {
        let world = &self.engine.world;
        let pool = world.needs[need].pool;
        if let Some(known) = self.supplies.borrow().get(&pool) {
            return *known;
        }
        let tally = self.tally();
        let mut supply = Supply::default();
        for &class in &world.pools[pool].classes {
            for (sum, count) in supply.counts.iter_mut().zip(&tally.classes[class].states) {
                *sum += count;
            }
        }
        self.supplies.borrow_mut().insert(pool, supply);
        supply
    }

    /// What stands between a need and every machine of the shard.
    pub fn funnel(&self, need: &NeedKey) -> Option<Funnel> {
        self.engine.as_sent(need).map(|need| self.funnel_of(need))
    }

    pub(crate) fn funnel_of(&self, need: PreparedIx) -> Funnel {
        let world = &self.engine.world;
        let row = &world.needs[need];
        let pool = &world.pools[row.pool];
        let tally = self.tally();
        let mut funnel = Funnel { claimed: self.row_of(need).verdict.claimed, ..Funnel::default() };
        for (class, of_class) in tally.classes.iter() {
            let machines: u32 = of_class.states.iter().sum();
            let attributes = &*world.classes[class].class;
            let matches =
                |requirement: &bigfleet_model::Requirement| requirement.matches(attributes);
            if machines == 0 || !pool.key.requirements.iter().all(matches) {
                continue;
            }
            funnel.matching += machines;
            if !pool.has(class) {
                continue;
            }
            let states = |of: &[MachineState]| {
                of.iter().map(|state| of_class.states[*state as usize]).sum::<u32>()
            };
            let here = tally.bound.get(&(class, row.cluster)).copied().unwrap_or(0);
            let bound = states(&[MachineState::Configured, MachineState::Configuring]);
            funnel.usable += machines;
            funnel.bound_here += here;
            funnel.bound_elsewhere += bound - here;
            funnel.held_back += of_class.held_back;
            funnel.taken += of_class.taken;
            funnel.idle_free += of_class.idle_free;
            funnel.speculative_free += of_class.speculative_free;
            funnel.in_transition +=
                states(&[MachineState::Creating, MachineState::Draining, MachineState::Deleting]);
            funnel.failed += states(&[MachineState::Failed]);
        }
        funnel
    }
}
