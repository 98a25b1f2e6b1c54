//! Why a need fared as it did (§9), for one need at a time.

mod domains;
mod supply;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

pub use domains::DomainCoverage;
pub(crate) use supply::Tally;
pub use supply::{Funnel, Supply};

use crate::{
    engine::Engine,
    handle::{MachineIx, PreparedIx},
    input::NeedKey,
    reader::Reader,
    rows::Row,
};

/// All there is to say about one need.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// How it fared.
    pub row: Row,
    /// Its place in the total order of needs as sent, from 1.
    pub rank: u32,
    /// How many needs as sent there are.
    pub of: u32,
    /// What stands between it and every machine.
    pub funnel: Funnel,
    /// Usable machines by state.
    pub supply: Supply,
    /// Who goes before it and has machines that it could use, most machines
    /// first.
    pub ahead: Vec<Ahead>,
    /// Of a gang, all its domains, the preferred one first.
    pub domains: Vec<DomainCoverage>,
}

/// A need that goes before another and has machines which that one could use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Which need, as sent.
    pub need: NeedKey,
    /// Its priority.
    pub priority: i32,
    /// Since when it is known.
    pub arrival: i64,
    /// Machines that it claims, waits for or preempts. A fold's machine counts for
    /// the first member it serves.
    pub machines: u32,
}

impl Engine {
    /// Why a need fared as it did; see [`Reader`].
    pub fn explain(&self, need: &NeedKey) -> Option<Explanation> {
        self.reader().explain(need)
    }
}

impl Reader<'_> {
    /// Why a need fared as it did, if there is such a need.
    pub fn explain(&self, need: &NeedKey) -> Option<Explanation> {
        let need = self.engine.as_sent(need)?;
        let (rank, of) = self.rank_of(need);
        Some(Explanation {
            row: self.row_of(need),
            rank,
            of,
            funnel: self.funnel_of(need),
            supply: self.supply_of(need),
            ahead: self.ahead_of(need),
            domains: self.domains_of(need, None),
        })
    }

    /// Place in the total order among needs as sent, from 1, and their number.
    fn rank_of(&self, need: PreparedIx) -> (u32, u32) {
        let (mut before, mut all) = (0, 0);
        for (other, _) in self.engine.all_as_sent() {
            all += 1;
            before += u32::from(self.engine.serving_order(other, need).is_lt());
        }
        (before + 1, all)
    }

    /// Who goes before a need with machines that it could use.
    pub(crate) fn ahead_of(&self, need: PreparedIx) -> Vec<Ahead> {
        let engine = self.engine;
        let mut counts: HashMap<PreparedIx, u32, FixedState> = HashMap::default();
        self.each_hold(need, |holder| {
            *counts.entry(holder).or_default() += 1;
        });
        let before = |(other, _): &(PreparedIx, u32)| engine.serving_order(*other, need).is_lt();
        let mut ahead: Vec<(PreparedIx, u32)> = counts.into_iter().filter(before).collect();
        ahead.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| engine.serving_order(a.0, b.0)));
        let told = |(other, machines)| Ahead {
            need: engine.key_of(other),
            priority: engine.world.priority(other),
            arrival: engine.world.needs[other].arrival,
            machines,
        };
        ahead.into_iter().map(told).collect()
    }

    /// Calls back with the need as sent that has a machine usable for `need`, once
    /// per such machine.
    fn each_hold(&self, need: PreparedIx, mut each: impl FnMut(PreparedIx)) {
        let (world, inversions) = (&self.engine.world, &self.engine.inversions);
        let pool = &world.pools[world.needs[need].pool];
        let usable = |machine: MachineIx| pool.has(world.machines.rows[machine].class);
        let mut folds: Vec<PreparedIx> = Vec::new();
        let claimed = world.machines.rows.iter().filter(|(_, row)| !row.removed);
        let claimed = claimed.filter_map(|(machine, row)| Some((machine, row.claimant?)));
        let reserved = inversions.reserved.iter().copied();
        let preempted = inversions.victims.iter().map(|victim| (victim.machine, victim.need));
        for (machine, holder) in claimed.chain(reserved).chain(preempted) {
            if !usable(machine) {
                continue;
            }
            if world.needs[holder].is_fold() {
                folds.push(holder);
            } else {
                each(holder);
            }
        }
        folds.sort_unstable();
        folds.dedup();
        for fold in folds {
            let members = world.folded(&world.needs[fold]);
            for (machine, first) in self.deal(fold).firsts(members.len()) {
                if usable(machine) {
                    each(members[first]);
                }
            }
        }
    }
}
