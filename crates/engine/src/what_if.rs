//! What a need would get that nobody has sent (wire chapter §5.1).

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, MachineId, MachineState, Need, Totals};

use crate::{
    engine::Engine,
    handle::{MachineIx, PreparedIx},
    input::{NoAcquire, Time},
    output::{Detail, Reason},
    phase2::Worth,
    rows::place_of,
    world::{Pick, World},
};

/// How a need would fare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// Nothing would be missing after Phase 1.
    pub satisfied: bool,
    /// Why it would be unmet.
    pub reason: Option<Reason>,
    /// Finer than the reason.
    pub detail: Option<Detail>,
    /// What would be missing after Phase 1.
    pub deficit: Totals,
    /// Machines that it would count on, of any state.
    pub claimed: u32,
    /// Of these what it would acquire or wait for: Idle, Speculative or Creating, by id.
    pub picks: Vec<WhatIfMachine>,
    /// What would be drained for it, by id.
    pub victims: Vec<WhatIfMachine>,
    /// Prices of the Speculative picks: what the shard would pay more.
    pub dollars_per_hour: f64,
    /// Values of a gang's keys, by key, if it would get a domain.
    pub domain: Option<BTreeMap<String, String>>,
}

/// A copy of an engine that one need is tried on.
pub struct Rehearsal {
    tried: Engine,
    need: Option<PreparedIx>,
    of_cycle: u64,
}

impl Rehearsal {
    /// Decides one cycle as if the need were there, held back for this reason. Once:
    /// a second need would be tried beside the first.
    pub fn decide(&mut self, need: &Need, why: Option<NoAcquire>, now: Time) {
        let tried = &mut self.tried;
        let number = tried.world.put_one(need);
        if why.is_some() {
            let account = tried.world.needs[number].account;
            tried.world.hold(account, why);
        }
        tried.cycle(now);
        self.need = Some(number);
    }
}

/// A machine that a need would take.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIfMachine {
    /// Which machine.
    pub machine: MachineId,
    /// With what is pending.
    pub state: MachineState,
    /// Dollars per hour: effective cost for the need; of a victim its price.
    pub cost: f64,
    /// Whom it serves now.
    pub cluster: Option<ClusterId>,
    /// Of the need that counts on it, else of its stamp; none if neither is known.
    pub priority: Option<i32>,
}

impl Engine {
    /// What the next cycle would decide for a need if its cluster wanted it, too. Under
    /// a known identity it stands for the known need and keeps that one's arrival, age
    /// and hold. Of gangs that share machines it tells this one's part.
    ///
    /// Decides one cycle on a copy of what cycles read, without ids and hosts: nothing
    /// of it stays.
    pub fn what_if(&self, need: &Need, now: Time) -> WhatIf {
        self.what_if_held(need, None, now)
    }

    /// The same for a need for which no node could be bootstrapped.
    pub fn what_if_held(&self, need: &Need, why: Option<NoAcquire>, now: Time) -> WhatIf {
        let mut rehearsal = self.rehearse();
        rehearsal.decide(need, why, now);
        self.named(&rehearsal)
    }

    /// A copy to try a need on, for whoever cannot hold the engine for as long as a
    /// cycle takes: copy, let go, [decide](Rehearsal::decide), and [ask](Self::tell)
    /// what came of it.
    pub fn rehearse(&self) -> Rehearsal {
        Rehearsal { tried: self.for_a_cycle(), need: None, of_cycle: self.cycles() }
    }

    /// What came of a rehearsal, with the ids that it does without. None if a cycle
    /// came in between, after which numbers may mean other machines.
    pub fn tell(&self, rehearsal: &Rehearsal) -> Option<WhatIf> {
        (rehearsal.of_cycle == self.cycles()).then(|| self.named(rehearsal))
    }

    fn named(&self, Rehearsal { tried, need, .. }: &Rehearsal) -> WhatIf {
        let Some(number) = *need else { return WhatIf::default() };
        let verdict = tried.reader().row_of(number).verdict;
        let picks = tried.picks_for(number);
        let victims = tried.victims_for(number);
        let world = &tried.world;
        let price = |pick: &Pick| world.classes[world.machines.rows[pick.machine].class].price;
        let bought =
            |pick: &&Pick| world.machines.rows[pick.machine].state == MachineState::Speculative;
        WhatIf {
            satisfied: verdict.satisfied,
            reason: verdict.reason,
            detail: verdict.detail,
            deficit: verdict.deficit,
            claimed: verdict.claimed,
            dollars_per_hour: picks.iter().filter(bought).map(price).sum(),
            picks: picks
                .iter()
                .map(|pick| self.told(world, pick.machine, None, pick.cost))
                .collect(),
            victims: victims.iter().map(|victim| self.victim(world, *victim)).collect(),
            domain: verdict.domain,
        }
    }

    /// What a need, as sent, acquires, by id.
    fn picks_for(&self, need: PreparedIx) -> Vec<Pick> {
        let row = &self.world.needs[need];
        let label = |pick: &Pick| self.world.machines.rows[pick.machine].label;
        let mut picks = match row.folded_into {
            None => row.picks.clone(),
            Some(fold) => {
                let place = place_of(&self.world, fold, need);
                let deal = self.reader().deal(fold);
                let served = place.and_then(|place| deal.serving(place)).map(|one| one.machine);
                let picks = self.world.needs[fold].picks.iter().copied();
                picks.filter(|pick| Some(pick.machine) == served).collect()
            }
        };
        picks.sort_unstable_by_key(label);
        picks
    }

    /// What is drained for a need, as sent, by id.
    fn victims_for(&self, need: PreparedIx) -> Vec<MachineIx> {
        let world = &self.world;
        let fold = world.needs[need].folded_into;
        let of = fold.unwrap_or(need);
        let victims = self.inversions.victims.iter().filter(|victim| victim.need == of);
        let mut victims: Vec<MachineIx> = victims.map(|victim| victim.machine).collect();
        if let Some(fold) = fold {
            let place = place_of(world, fold, need);
            let deal = self.reader().deal(fold);
            let place = place.and_then(|place| deal.covering(world, fold, place));
            victims.retain(|victim| place == Some(*victim));
        }
        victims.sort_unstable_by_key(|machine| world.machines.rows[*machine].label);
        victims
    }

    fn victim(&self, world: &World, machine: MachineIx) -> WhatIfMachine {
        let row = &world.machines.rows[machine];
        let worth = row.run.map(|run| Worth::of(world, run, row.claimant));
        let priority = worth.and_then(|worth| worth.priority);
        self.told(world, machine, priority, world.classes[row.class].price)
    }

    /// A machine of the tried world, by the id that it has in this one.
    fn told(
        &self,
        world: &World,
        machine: MachineIx,
        priority: Option<i32>,
        cost: f64,
    ) -> WhatIfMachine {
        let row = &world.machines.rows[machine];
        WhatIfMachine {
            machine: self.world.machines.id(machine).into(),
            state: row.state,
            cost,
            cluster: row.cluster.map(|cluster| world.names.clusters[cluster].id.clone()),
            priority,
        }
    }
}
