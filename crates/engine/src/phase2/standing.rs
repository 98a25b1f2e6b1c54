//! Where machines stand after Phase 1: who counts on them, what they are worth.

use bigfleet_model::{MachineState, Totals};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::score::victim_score;
use crate::{
    phase1::{Prepared, lowers},
    world::World,
};

/// Claims and what follows from them.
pub(crate) struct Standing {
    /// Prepared need that counts on a machine.
    pub(crate) claimed_by: Vec<Option<usize>>,
    /// Draining machines by id.
    pub(crate) draining: Vec<usize>,
    /// Unclaimed Configured machines of ready clusters, in release order.
    pub(crate) excess: Vec<usize>,
    /// Kept until what replaces them is Configured, by machine (§8).
    pub(crate) awaited: Vec<bool>,
    /// Configured machines whose priority is known, by class, then by id.
    configured: Vec<Vec<usize>>,
    /// Least priority among them, by class: a class without anything lower is
    /// passed over whole.
    least: Vec<Option<i32>>,
    /// Priority and both penalties of a Configured machine, by machine.
    worth: Vec<Worth>,
}

/// What draining a machine would cost its workload.
#[derive(Clone, Copy, Default)]
struct Worth {
    priority: Option<i32>,
    interruption: f64,
    reclamation: f64,
}

impl Standing {
    pub(crate) fn of(world: &World<'_>, prepared: &[Prepared]) -> Self {
        let mut claimed_by = vec![None; world.machines.len()];
        for (at, need) in prepared.iter().enumerate() {
            for claim in need.claims() {
                claimed_by[claim.machine] = Some(at);
            }
        }
        let in_state = |state: MachineState| {
            (0..world.machines.len()).filter(move |at| world.machines[*at].state == state)
        };
        let is_ready = |at: usize| world.machines[at].cluster.is_some_and(|c| world.ready[c]);
        let mut excess: Vec<usize> = in_state(MachineState::Configured)
            .filter(|at| claimed_by[*at].is_none() && is_ready(*at))
            .collect();
        excess.sort_by(|a, b| release_order(world, *a, *b));
        let awaited = awaited(world, prepared, &excess);
        let worth = |at: usize| {
            let row = &world.machines[at];
            match (claimed_by[at], row.stamp) {
                (Some(need), _) => {
                    let profile = &world.profiles.row(prepared[need].profile).profile;
                    Worth {
                        priority: Some(profile.priority()),
                        interruption: profile.interruption().dollars(),
                        reclamation: profile.reclamation().dollars(),
                    }
                }
                (None, Some(stamp)) => Worth {
                    priority: stamp.priority,
                    interruption: stamp.interruption,
                    reclamation: stamp.reclamation,
                },
                (None, None) => Worth::default(),
            }
        };
        let worth: Vec<Worth> = (0..world.machines.len()).map(worth).collect();
        let mut configured = vec![Vec::new(); world.classes.len()];
        let mut least = vec![Some(i32::MAX); world.classes.len()];
        for at in in_state(MachineState::Configured) {
            let row = &world.machines[at];
            if row.stamp.is_some() || is_ready(at) {
                configured[row.class].push(at);
                least[row.class] = least[row.class].min(worth[at].priority);
            }
        }
        Self {
            draining: in_state(MachineState::Draining).collect(),
            configured,
            least,
            worth,
            excess,
            awaited,
            claimed_by,
        }
    }

    /// Draining, excess and victim machines of a need.
    pub(super) fn movable(&self, world: &World<'_>, need: &Prepared) -> Vec<usize> {
        let priority = world.profiles.row(need.profile).profile.priority();
        let mut movable = self.victims(world, need, priority);
        movable.extend(self.draining.iter().chain(&self.excess));
        movable
    }

    /// Excess below a priority, in release order.
    pub(super) fn lower_excess(
        &self,
        world: &World<'_>,
        priority: i32,
    ) -> impl Iterator<Item = usize> {
        let below = move |machine: &usize| Self::stamp_priority(world, *machine) < Some(priority);
        self.excess.iter().copied().filter(below)
    }

    /// Priority in the stamp; none is below every priority.
    pub(super) fn stamp_priority(world: &World<'_>, machine: usize) -> Option<i32> {
        world.machines[machine].stamp.and_then(|stamp| stamp.priority)
    }

    /// How far a priority stands above a machine's.
    pub(super) fn gap(&self, priority: i32, machine: usize) -> i64 {
        bigfleet_model::grace::priority_gap(priority, self.worth[machine].priority)
    }

    /// Configured machines of strictly lower priority that the need can use, the
    /// best victim first.
    pub(super) fn victims(&self, world: &World<'_>, need: &Prepared, priority: i32) -> Vec<usize> {
        let classes = world.profiles.row(need.profile).classes.iter().copied();
        let mut victims: Vec<(f64, usize)> = classes
            .filter(|class| self.least[*class] < Some(priority) && need.usable(world, *class))
            .flat_map(|class| &self.configured[class])
            .filter(|at| self.worth[**at].priority < Some(priority))
            .map(|&at| {
                let (gap, worth) = (self.gap(priority, at), self.worth[at]);
                let options = &world.input.phase2;
                (victim_score(options, gap, worth.interruption, worth.reclamation), at)
            })
            .collect();
        victims.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        victims.into_iter().map(|(_, at)| at).collect()
    }
}

/// The exact reverse of keep order: the dearest and least valued leave first.
fn release_order(world: &World<'_>, a: usize, b: usize) -> std::cmp::Ordering {
    let key = |at: usize| {
        let row = &world.machines[at];
        (world.classes[row.class].price, row.stamp.map_or(0.0, |stamp| stamp.reclamation), at)
    };
    let (a, b) = (key(a), key(b));
    b.0.total_cmp(&a.0).then_with(|| a.1.total_cmp(&b.1)).then_with(|| b.2.cmp(&a.2))
}

/// Excess that serves a need of its cluster until what replaces it is Configured
/// (§8, make before break).
fn awaited(world: &World<'_>, prepared: &[Prepared], excess: &[usize]) -> Vec<bool> {
    let mut waiting: Vec<Vec<(usize, Totals)>> = vec![Vec::new(); world.names.clusters()];
    for (at, need) in prepared.iter().enumerate() {
        let residual = ready_residual(world, need);
        if !need.is_homeless() && !residual.is_zero() {
            waiting[need.cluster].push((at, residual));
        }
    }
    let serves = |(at, residual): &(usize, Totals), class: usize| {
        let need = &prepared[*at];
        need.usable(world, class) && lowers(residual, &need.contribution(world.capacity(class)))
    };
    let mut known: HashMap<(usize, usize), bool, FixedState> = HashMap::default();
    let mut awaited = vec![false; world.machines.len()];
    for &machine in excess {
        let row = &world.machines[machine];
        let Some(cluster) = row.cluster else { continue };
        awaited[machine] = *known
            .entry((cluster, row.class))
            .or_insert_with(|| waiting[cluster].iter().any(|one| serves(one, row.class)));
    }
    awaited
}

/// What a need's Configured claims alone leave open.
fn ready_residual(world: &World<'_>, need: &Prepared) -> Totals {
    let mut covered = Totals::zero();
    for claim in need.claims() {
        let row = &world.machines[claim.machine];
        if row.state == MachineState::Configured {
            covered.add_assign(need.contribution(world.capacity(row.class)).as_ref());
        }
    }
    need.aggregate.sub_sat(&covered)
}
