//! Needs as sent (§9): what readers are shown. The phases see some gangs folded
//! into one need; the cluster that sent them asks after each.

mod deal;

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, MachineState, Need, Totals};

pub(crate) use deal::{Deal, Drains};

use crate::{
    engine::Engine,
    handle::{ClassIx, PreparedIx},
    input::NeedKey,
    output::{Outcome, Verdict},
    reader::Reader,
    verdict::supply_exists,
    world::{Prepared, RunKind, World},
};

/// How one need fared, as its cluster sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// As it was sent, with the time since when it is known.
    pub need: Need,
    /// Under the need's own identity, also where it was folded with others.
    pub verdict: Verdict,
    /// Claimed machines that are not Configured yet.
    pub coming: u32,
    /// What Phase 2 freed, where that was not enough; of a folded gang all that
    /// was freed for the fold.
    pub preemption: Option<Preemption>,
}

/// Machines drained for a need that is still short.
#[derive(Clone, Debug, PartialEq)]
pub struct Preemption {
    /// How many.
    pub victims: u32,
    /// Their capacity.
    pub freed: Totals,
}

impl Engine {
    /// One row per need of a cluster, in the total order of needs; see [`Reader`].
    pub fn rows(&self, cluster: &ClusterId) -> Vec<Row> {
        self.reader().rows(cluster)
    }

    /// The row of one need; see [`Reader`].
    pub fn row(&self, need: &NeedKey) -> Option<Row> {
        self.reader().row(need)
    }
}

impl Reader<'_> {
    /// One row per need of a cluster, in the total order of needs; none before the
    /// first cycle.
    pub fn rows(&self, cluster: &ClusterId) -> Vec<Row> {
        let world = &self.engine.world;
        let known = world.names.known_cluster(cluster).filter(|_| self.engine.cycles() > 0);
        let Some(known) = known else { return Vec::new() };
        let mut needs = world.names.clusters[known].needs.clone();
        needs.sort_unstable_by(|a, b| self.engine.serving_order(*a, *b));
        needs.into_iter().map(|need| self.row_of(need)).collect()
    }

    /// The row of one need, if there is such a need.
    pub fn row(&self, need: &NeedKey) -> Option<Row> {
        self.engine.as_sent(need).map(|need| self.row_of(need))
    }

    pub(crate) fn row_of(&self, need: PreparedIx) -> Row {
        let engine = self.engine;
        let row = &engine.world.needs[need];
        let sent = engine.need(row);
        match row.folded_into {
            Some(fold) => self.row_of_member(need, fold, sent),
            None => Row {
                need: sent,
                verdict: engine.verdict(need),
                coming: row.unready,
                preemption: self.preemption(need).cloned(),
            },
        }
    }

    fn row_of_member(&self, need: PreparedIx, fold: PreparedIx, sent: Need) -> Row {
        let world = &self.engine.world;
        let row = &world.needs[need];
        let place = place_of(world, fold, need);
        let deal = self.deal(fold);
        let served = place.and_then(|place| deal.serving(place));
        let short = world.needs[fold].short.filter(|_| served.is_none());
        let short = short.map(|at| &self.engine.decided.short[at as usize]);
        let picked = |kind| u32::from(served.is_some_and(|served| served.picked == Some(kind)));
        let (bootstrap, provision) = (picked(RunKind::Idle), picked(RunKind::Speculative));
        let class = served.map(|served| world.machines.rows[served.machine].class);
        let ready = served.is_some_and(|served| {
            world.machines.rows[served.machine].state == MachineState::Configured
        });
        let verdict = Verdict {
            cluster: sent.cluster.clone(),
            fingerprint: sent.profile.fingerprint().clone(),
            group: sent.group.clone(),
            aggregate: row.aggregate.clone(),
            min_unit: world.pools[row.pool].key.unit.clone(),
            folded: 0,
            satisfied: served.is_some(),
            deficit: if served.is_some() { Totals::zero() } else { row.aggregate.clone() },
            claimed: u32::from(served.is_some()),
            bootstrap,
            provision,
            domain: class.and_then(|class| domain_of(world, row, class)),
            satisfiable: served.is_some(),
            // Whoever folds is looked after, however long it was hopeless.
            parked: false,
            matching_supply_exists: supply_exists(world, row),
            gang_age: row.age,
            outcome: match (served.is_some(), provision, bootstrap) {
                (false, ..) => Outcome::Unsatisfied,
                (true, 1, _) => Outcome::EmittedSpec,
                (true, _, 1) => Outcome::EmittedIdle,
                (true, ..) => Outcome::AbsorbedBySupply,
            },
            reason: short.map(|short| short.reason),
            detail: short.and_then(|short| short.detail),
        };
        Row {
            need: sent,
            verdict,
            coming: u32::from(served.is_some() && !ready),
            preemption: self.preemption(fold).filter(|_| served.is_none()).cloned(),
        }
    }
}

/// Place of a gang among the members of its fold, which are in serving order.
pub(crate) fn place_of(world: &World, fold: PreparedIx, member: PreparedIx) -> Option<usize> {
    let members = world.folded(&world.needs[fold]);
    members.binary_search_by(|known| world.serving_order(*known, member)).ok()
}

/// Values of a gang's keys on machines of a class, by key.
pub(crate) fn domain_of(
    world: &World,
    need: &Prepared,
    class: ClassIx,
) -> Option<BTreeMap<String, String>> {
    let topology = world.topology(need)?;
    let values = topology.values(topology.of_class(class)?);
    Some(topology.keys.iter().cloned().zip(values.iter().cloned()).collect())
}
