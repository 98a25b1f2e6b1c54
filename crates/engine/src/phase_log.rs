//! What a cycle came to, for those who watch whether it makes sense (§10).

use std::collections::BTreeMap;

use bigfleet_model::Totals;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::{
    engine::Engine,
    handle::{ClusterIx, MachineIx, PreparedIx},
    input::NeedKey,
    verdict::Shortfall,
    world::{Constraint, lowers},
};

/// Figures of one cycle. Needs are those that the phases saw: gangs that folded
/// are one, and not a gang.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseLog {
    /// Needs.
    pub needs: usize,
    /// Of these gangs.
    pub gangs: usize,
    /// Needs that Phase 1 left short.
    pub unsatisfied: usize,
    /// Of these gangs.
    pub unsatisfied_gangs: usize,
    /// Machines that nobody needs.
    pub reclaims: usize,
    /// Of these such as would have served a need of their cluster that is short.
    /// Anything but zero is a defect.
    pub reclaims_in_need: usize,
    /// Gangs that Phase 1 left short, in the total order.
    pub short_gangs: Vec<ShortGang>,
}

/// A gang that Phase 1 left short.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortGang {
    /// Which gang.
    pub need: NeedKey,
    /// Values of its keys, by key, if it has a domain.
    pub domain: Option<BTreeMap<String, String>>,
    /// Machines that it acquires or waits for.
    pub acquired: usize,
    /// What is missing after Phase 1.
    pub residual: Totals,
    /// It was quiet for having been hopeless too long.
    pub parked: bool,
}

impl Engine {
    /// Figures of the last cycle; reading them changes nothing.
    pub fn phase_log(&self) -> PhaseLog {
        let world = &self.world;
        let prepared = self.prepared_order();
        let is_gang = |need: &PreparedIx| world.needs[*need].constraint == Constraint::Same;
        let short = || self.decided.short.iter().map(|short| short.need);
        let short_gangs = self.decided.short.iter().filter(|short| is_gang(&short.need));
        PhaseLog {
            needs: prepared.len(),
            gangs: prepared.iter().filter(|need| is_gang(need)).count(),
            unsatisfied: short().count(),
            unsatisfied_gangs: short().filter(is_gang).count(),
            reclaims: self.decided.reclaimed.len(),
            reclaims_in_need: self.reclaims_in_need(),
            short_gangs: short_gangs
                .map(|short| {
                    let verdict = self.verdict(short.need);
                    ShortGang {
                        need: self.key_of(short.need),
                        domain: verdict.domain,
                        acquired: world.needs[short.need].picks.len(),
                        residual: verdict.deficit,
                        parked: verdict.parked,
                    }
                })
                .collect(),
        }
    }

    /// Reclaimed machines that would lower what a need of their cluster lacks. One
    /// that a need waits for is reclaimed for it.
    fn reclaims_in_need(&self) -> usize {
        let world = &self.world;
        let mut short: HashMap<ClusterIx, Vec<&Shortfall>, FixedState> = HashMap::default();
        for one in &self.decided.short {
            short.entry(world.needs[one.need].cluster).or_default().push(one);
        }
        let reserved: HashSet<(MachineIx, PreparedIx), FixedState> =
            self.inversions.reserved.iter().copied().collect();
        let serves = |machine: MachineIx, short: &Shortfall| {
            let class = world.machines.rows[machine].class;
            let need = &world.needs[short.need];
            let contribution = world.pools[need.pool].contribution(&world.classes[class].capacity);
            !need.is_homeless()
                && world.usable(need, class)
                && lowers(&short.deficit, contribution.as_ref())
                && !reserved.contains(&(machine, short.need))
        };
        let in_need = |machine: &&MachineIx| {
            let cluster = world.machines.rows[**machine].cluster;
            let of_cluster = cluster.and_then(|cluster| short.get(&cluster));
            of_cluster.is_some_and(|short| short.iter().any(|short| serves(**machine, short)))
        };
        self.decided.reclaimed.iter().filter(in_need).count()
    }
}
