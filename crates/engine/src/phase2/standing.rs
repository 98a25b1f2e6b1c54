//! Where bound machines stand after Phase 1: who counts on them, what they are
//! worth, and what of them nobody needs.

use bigfleet_model::{MachineState, Totals};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::{
    handle::{ClassIx, ClusterIx, MachineIx, PreparedIx, RunIx},
    phase1::in_keep_order,
    world::{Constraint, World, lowers},
};

/// What draining a machine would cost its workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Worth {
    pub(crate) priority: Option<i32>,
    pub(crate) interruption: f64,
    pub(crate) reclamation: f64,
}

impl Worth {
    /// Of the claimant's need, else of the stamp: that is the stamp which the
    /// machine will carry next cycle.
    pub(crate) fn of(world: &World, run: RunIx, claimant: Option<PreparedIx>) -> Self {
        if let Some(need) = claimant {
            let profile = &world.profiles[world.needs[need].profile].profile;
            return Self {
                priority: Some(profile.priority()),
                interruption: profile.interruption().dollars(),
                reclamation: profile.reclamation().dollars(),
            };
        }
        let stamp = world.runs[run].stamp.map(|stamp| &world.names.stamps[stamp]);
        stamp.map_or_else(Self::default, |stamp| Self {
            priority: stamp.priority,
            interruption: stamp.interruption,
            reclamation: stamp.reclamation,
        })
    }
}

/// Which unclaimed machines must stay for a while.
pub(crate) struct Standing {
    /// Needs whose Configured claims alone leave something open, by cluster.
    waiting: HashMap<ClusterIx, Vec<(PreparedIx, Totals)>, FixedState>,
    awaited: HashMap<(ClusterIx, ClassIx), bool, FixedState>,
    /// What machines hold that needs outgrew and still run on.
    housed: HashMap<PreparedIx, Totals, FixedState>,
    /// Machines that are kept for needs that outgrew their kind, by cluster.
    kept: HashMap<ClusterIx, Kept, FixedState>,
}

type Kept = HashSet<MachineIx, FixedState>;

impl Standing {
    /// After Phase 1, which left these needs short.
    pub(crate) fn after(world: &World, short: &[PreparedIx]) -> Self {
        // Where nothing is unclaimed, nothing is awaited.
        let waiting = if world.open_runs == 0 { HashMap::default() } else { waiting(world, short) };
        let housed = housed(world);
        Self { waiting, awaited: HashMap::default(), housed, kept: HashMap::default() }
    }

    /// Whether unclaimed machines of a cluster and class serve until what replaces
    /// them is Configured (§8, make before break).
    pub(crate) fn is_awaited(&mut self, world: &World, cluster: ClusterIx, class: ClassIx) -> bool {
        if let Some(known) = self.awaited.get(&(cluster, class)) {
            return *known;
        }
        let serves = |(need, residual): &(PreparedIx, Totals)| {
            let row = &world.needs[*need];
            let capacity = &world.classes[class].capacity;
            world.usable(row, class)
                && lowers(residual, world.pools[row.pool].contribution(capacity).as_ref())
        };
        let awaited = self.waiting.get(&cluster).is_some_and(|needs| needs.iter().any(serves));
        self.awaited.insert((cluster, class), awaited);
        awaited
    }

    /// Unclaimed Configured machines of a cluster that stay for needs that outgrew
    /// their kind (§8).
    pub(crate) fn kept_in(&mut self, world: &World, cluster: ClusterIx) -> &Kept {
        let waiting = self.waiting.get(&cluster).map_or(&[][..], Vec::as_slice);
        let housed = &self.housed;
        self.kept.entry(cluster).or_insert_with(|| kept_in(world, cluster, waiting, housed))
    }
}

/// What the machines hold that needs outgrew and still run on.
fn housed(world: &World) -> HashMap<PreparedIx, Totals, FixedState> {
    let mut housed: HashMap<_, Totals, FixedState> = HashMap::default();
    for (machine, need) in &world.outgrown {
        let class = world.machines.rows[*machine].class;
        housed.entry(*need).or_default().add_assign(&world.classes[class].capacity);
    }
    housed
}

fn kept_in(
    world: &World,
    cluster: ClusterIx,
    waiting: &[(PreparedIx, Totals)],
    housed: &HashMap<PreparedIx, Totals, FixedState>,
) -> Kept {
    let mut kept = Kept::default();
    let open = &world.names.clusters[cluster].open;
    let outgrew = |need: PreparedIx| {
        let pool = &world.pools[world.needs[need].pool];
        move |run: &RunIx| pool.outgrew(world.runs[*run].class)
    };
    let mut needs: Vec<&(PreparedIx, Totals)> = waiting
        .iter()
        .filter(|(need, _)| world.needs[*need].constraint != Constraint::Same)
        .filter(|(need, _)| open.iter().any(outgrew(*need)))
        .collect();
    if needs.is_empty() {
        return kept;
    }
    needs.sort_unstable_by(|(a, _), (b, _)| {
        let tiers = world.precedence(*b).cmp(&world.precedence(*a));
        tiers.then_with(|| world.serving_order(*a, *b))
    });
    // Put in order once, for all of them.
    let mut left = in_keep_order(world, open.iter().copied(), |machine| {
        let row = &world.machines.rows[machine];
        row.claimant.is_none() && row.state == MachineState::Configured
    });
    for (need, residual) in needs {
        let mut residual = residual.clone();
        if let Some(housed) = housed.get(need) {
            residual.sub_sat_assign(housed);
        }
        let pool = &world.pools[world.needs[*need].pool];
        left.retain(|(_, _, machine)| {
            let class = world.machines.rows[*machine].class;
            let capacity = &world.classes[class].capacity;
            // Only what has some of everything that is lacking: a machine without the
            // accelerator that a need waits for was never meant for it.
            let stays = !residual.is_zero() && pool.outgrew(class) && capacity.spans(&residual);
            if stays {
                residual.sub_sat_assign(capacity);
                kept.insert(*machine);
            }
            !stays
        });
    }
    kept
}

fn waiting(
    world: &World,
    short: &[PreparedIx],
) -> HashMap<ClusterIx, Vec<(PreparedIx, Totals)>, FixedState> {
    let mut waiting: HashMap<_, Vec<_>, FixedState> = HashMap::default();
    let mut seen: HashSet<PreparedIx, FixedState> = HashSet::default();
    let unready = world.unready.iter().filter(|need| world.needs[**need].unready > 0);
    for &need in unready.chain(short) {
        let row = &world.needs[need];
        if row.removed || row.is_homeless() || !seen.insert(need) {
            continue;
        }
        let residual = ready_residual(world, need);
        if !residual.is_zero() {
            waiting.entry(row.cluster).or_default().push((need, residual));
        }
    }
    waiting
}

/// What a need's Configured claims alone leave open.
fn ready_residual(world: &World, need: PreparedIx) -> Totals {
    let row = &world.needs[need];
    let contribution = |class: ClassIx| {
        let capacity = &world.classes[class].capacity;
        world.pools[row.pool].contribution(capacity)
    };
    let slowly = || {
        let mut covered = Totals::zero();
        for machine in row.claims() {
            let machine = &world.machines.rows[machine];
            if machine.state == MachineState::Configured {
                covered.add_assign(contribution(machine.class).as_ref());
            }
        }
        row.aggregate.sub_sat(&covered)
    };
    // What is acquired is not Configured. If nothing else of it is not, as is the
    // rule, there is no machine to look at.
    if row.unready as usize != row.picks.len() {
        return slowly();
    }
    let mut covered = row.covered.clone();
    for pick in &row.picks {
        covered.sub_sat_assign(contribution(world.runs[pick.run].class).as_ref());
    }
    let residual = row.aggregate.sub_sat(&covered);
    debug_assert_eq!(residual, slowly());
    residual
}

/// The unclaimed Configured machines of a run.
pub(crate) fn excess_of(world: &World, run: RunIx) -> impl DoubleEndedIterator<Item = MachineIx> {
    let members = world.runs[run].members.iter().copied();
    members.filter(|machine| {
        let row = &world.machines.rows[*machine];
        row.claimant.is_none() && row.state == MachineState::Configured
    })
}

/// The exact reverse of keep order: the dearest and least valued leave first.
pub(crate) fn release_order(world: &World, a: MachineIx, b: MachineIx) -> std::cmp::Ordering {
    let key = |machine: MachineIx| {
        let row = &world.machines.rows[machine];
        (world.classes[row.class].price, reclamation(world, machine), row.label)
    };
    let (a, b) = (key(a), key(b));
    b.0.total_cmp(&a.0).then_with(|| a.1.total_cmp(&b.1)).then_with(|| b.2.cmp(&a.2))
}

/// Reclamation penalty in a machine's stamp.
pub(crate) fn reclamation(world: &World, machine: MachineIx) -> f64 {
    let stamp = world.machines.rows[machine].stamp;
    stamp.map_or(0.0, |stamp| world.names.stamps[stamp].reclamation)
}
