//! Answers about the last cycle, computed when somebody asks and never in the
//! cycle (§9).

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
};

use bigfleet_model::Totals;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    engine::Engine,
    explain::{Supply, Tally},
    handle::{PoolIx, PreparedIx},
    input::NeedKey,
    rows::{Deal, Drains, Preemption},
    world::Prepared,
};

/// Reads the last cycle and remembers what it has worked out. The engine cannot
/// change while it is read, so nothing of it grows stale.
///
/// Changes that came in since the cycle ended already show: ask before taking
/// them in.
pub struct Reader<'e> {
    pub(crate) engine: &'e Engine,
    tally: OnceCell<Tally>,
    preemptions: OnceCell<HashMap<PreparedIx, Preemption, FixedState>>,
    drains: OnceCell<Drains>,
    deals: RefCell<HashMap<PreparedIx, Rc<Deal>, FixedState>>,
    pub(crate) supplies: RefCell<HashMap<PoolIx, Supply, FixedState>>,
}

impl Engine {
    /// For questions about the last cycle.
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            engine: self,
            tally: OnceCell::new(),
            preemptions: OnceCell::new(),
            drains: OnceCell::new(),
            deals: RefCell::default(),
            supplies: RefCell::default(),
        }
    }

    /// The need that a cluster sent under this identity, once a cycle has seen it.
    pub(crate) fn as_sent(&self, key: &NeedKey) -> Option<PreparedIx> {
        let names = &self.world.names;
        let account = names.known_account(&key.cluster, &key.fingerprint, &key.group)?;
        names.accounts[account].need.filter(|_| self.cycles() > 0)
    }

    /// Every need as its cluster sent it.
    pub(crate) fn all_as_sent(&self) -> impl Iterator<Item = (PreparedIx, &Prepared)> {
        self.world.needs.iter().filter(|(_, row)| !row.removed && !row.is_fold())
    }
}

impl Reader<'_> {
    /// Machines by class, counted once.
    pub(crate) fn tally(&self) -> &Tally {
        self.tally.get_or_init(|| Tally::of(&self.engine.world))
    }

    /// The need, as sent, that a machine counts for, or that outgrew it and still runs on
    /// it. Where several gangs share it, the first of them.
    pub fn claimant(&self, machine: &str) -> Option<NeedKey> {
        let world = &self.engine.world;
        let number = world.machines.find(machine)?;
        let need = world.machines.rows[number].claimant.or_else(|| world.outgrown_by(number))?;
        if !world.needs[need].is_fold() {
            return Some(self.engine.key_of(need));
        }
        let members = world.folded(&world.needs[need]);
        if members.is_empty() {
            return None;
        }
        let deal = self.deal(need);
        let first = deal.firsts(members.len()).find(|(dealt, _)| *dealt == number);
        first.map(|(_, first)| self.engine.key_of(members[first]))
    }

    /// How a fold's machines are dealt out.
    pub(crate) fn deal(&self, fold: PreparedIx) -> Rc<Deal> {
        let drains = self.drains.get_or_init(|| Drains::of(self.engine));
        let deal = || Rc::new(Deal::of(&self.engine.world, fold, drains));
        self.deals.borrow_mut().entry(fold).or_insert_with(deal).clone()
    }

    /// What Phase 2 freed for a need that is still short.
    pub(crate) fn preemption(&self, need: PreparedIx) -> Option<&Preemption> {
        let all = self.preemptions.get_or_init(|| {
            let (world, decided) = (&self.engine.world, &self.engine.decided);
            let fell_short = |need: PreparedIx| {
                let short = world.needs[need].short.map(|at| &decided.short[at as usize]);
                short.is_some_and(|short| !short.open.is_zero())
            };
            let mut all: HashMap<PreparedIx, Preemption, FixedState> = HashMap::default();
            for victim in
                self.engine.inversions.victims.iter().filter(|victim| fell_short(victim.need))
            {
                let class = world.machines.rows[victim.machine].class;
                let of_need = all
                    .entry(victim.need)
                    .or_insert_with(|| Preemption { victims: 0, freed: Totals::zero() });
                of_need.victims += 1;
                of_need.freed.add_assign(&world.classes[class].capacity);
            }
            all
        });
        all.get(&need)
    }
}
