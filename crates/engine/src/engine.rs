//! The engine that remembers: it takes what changed and decides again what that
//! touches, with the same outcome as deciding everything anew (§11).

use bigfleet_model::{ClusterId, MachineId, Need, Stamp};

use crate::{
    action::Action,
    full_pass::{FullPass, Scope},
    handle::{MachineIx, PreparedIx},
    input::{HeldBack, NeedKey, NoAcquire, Phase2Options, ReleasePolicy, Time, Tracked},
    phase1::{self, Scratch},
    phase2::{self, Inversions, Standing},
    phase3,
    verdict::{Shortfall, next_age},
    world::{Unit, World},
};

/// A part of a cycle that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// What changed is in its place.
    Prepared,
    /// Demand has met supply.
    Phase1,
    /// Inversions are resolved.
    Phase2,
    /// What nobody needs is known.
    Phase3,
}

/// Takes changes, decides, and remembers.
#[derive(Default)]
pub struct Engine {
    pub(crate) world: World,
    pub(crate) options: Phase2Options,
    pub(crate) release: ReleasePolicy,
    scratch: Scratch,
    /// Needs that the phases at work leave short.
    short: Vec<PreparedIx>,
    pub(crate) inversions: Inversions,
    pub(crate) decided: Decided,
    cycle: u64,
    pub(crate) full_next: bool,
    /// The last cycle decided everything from nothing.
    afresh: bool,
    pub(crate) last_full: Option<FullPass>,
    /// The last cycle found claims other than those that were made.
    pub(crate) drifted: bool,
    pub(crate) drifts: u64,
}

/// What the last cycle came to, in numbers.
#[derive(Default)]
pub(crate) struct Decided {
    pub(crate) now: Time,
    /// Needs that acquire something.
    pub(crate) acquiring: Vec<PreparedIx>,
    pub(crate) reclaimed: Vec<MachineIx>,
    pub(crate) released: Vec<MachineIx>,
    /// In serving order.
    pub(crate) short: Vec<Shortfall>,
    /// Everything that was decided this cycle.
    pub(crate) touched: Vec<PreparedIx>,
    /// Needs all of whose machines have become Configured.
    pub(crate) arrived: Vec<PreparedIx>,
    /// Unsettled: decided again next cycle.
    restless: Vec<Unit>,
}

impl Engine {
    /// With no machine and no need.
    pub fn new(options: Phase2Options, release: ReleasePolicy) -> Self {
        Self { options, release, ..Self::default() }
    }

    /// Takes in a machine, new or changed.
    pub fn upsert(&mut self, tracked: &Tracked) {
        self.world.upsert(tracked);
    }

    /// Takes in machines, new or changed, each with the action that is queued or
    /// executing for it now, if any: quicker than one by one.
    pub fn upsert_all(&mut self, seen: &[(&Tracked, Option<&Action>)]) {
        self.world.upsert_all(seen);
    }

    /// A machine is gone.
    pub fn remove(&mut self, machine: &MachineId) {
        if let Some(number) = self.world.machines.find(machine) {
            self.world.remove(number);
        }
    }

    /// Replaces the whole contribution of a cluster, which is ready from now on.
    /// Each identity is there once. A need that stays keeps its arrival.
    pub fn replace(&mut self, cluster: &ClusterId, needs: &[Need]) {
        let number = self.world.names.cluster(cluster);
        self.world.names.clusters[number].ready = true;
        self.world.replace(number, needs);
    }

    /// Says whether a cluster has reported a roll-up.
    pub fn set_ready(&mut self, cluster: &ClusterId, ready: bool) {
        let number = self.world.names.cluster(cluster);
        self.world.names.clusters[number].ready = ready;
    }

    /// Notes an action that is queued or executing.
    pub fn pend(&mut self, action: Action) {
        if let Some(number) = self.world.machines.find(&action.machine) {
            self.world.pend(number, action);
        }
    }

    /// Forgets what was pending for a machine.
    pub fn unpend(&mut self, machine: &MachineId) {
        if let Some(number) = self.world.machines.find(machine) {
            self.world.unpend(number);
        }
    }

    /// Says why no node can be bootstrapped for a need now, if so.
    pub fn hold(&mut self, need: &NeedKey, why: Option<NoAcquire>) {
        let names = &self.world.names;
        let account = names.known_account(&need.cluster, &need.fingerprint, &need.group);
        if let Some(account) = account {
            self.world.hold(account, why);
        }
    }

    /// Says why a machine cannot be acquired now, if so.
    pub fn hold_back(&mut self, machine: &MachineId, why: Option<HeldBack>) {
        if let Some(number) = self.world.machines.find(machine) {
            self.world.hold_back(number, why);
        }
    }

    /// Cycles decided so far; before the first there is nothing to read.
    pub fn cycles(&self) -> u64 {
        self.cycle
    }

    /// Whether the last cycle was a full pass: it decided everything from nothing, as
    /// the first and one in a hundred do, and one that found drift or was asked to.
    pub fn was_full_pass(&self) -> bool {
        self.afresh
    }

    /// The time that the last cycle was given.
    pub fn decided_at(&self) -> Time {
        self.decided.now
    }

    /// Whether gangs that fit a machine fold into one need (§4.2), as they do
    /// unless told otherwise. For measurements: what folding saves.
    pub fn set_folding(&mut self, folding: bool) {
        self.world.set_folding(folding);
    }

    /// Machines known.
    pub fn machines(&self) -> usize {
        self.world.machines.len()
    }

    /// Needs as sent.
    pub fn needs(&self) -> usize {
        self.world.names.clusters.iter().map(|(_, cluster)| cluster.needs.len()).sum()
    }

    /// Needs and folds that the last cycle left short in Phase 1.
    pub fn short(&self) -> usize {
        self.decided.short.len()
    }

    /// Reads every hot record once: what a cycle's time is compared with.
    pub fn scan(&self) -> u64 {
        let machines = self.world.machines.rows.iter();
        machines.fold(0, |sum, (_, row)| sum.wrapping_add(row.label ^ row.state as u64))
    }

    /// Decides one cycle.
    pub fn cycle(&mut self, now: Time) {
        self.cycle_observed(now, &mut |_| {});
    }

    /// Decides one cycle and tells when each part of it has ended.
    pub fn cycle_observed(&mut self, now: Time, observe: &mut dyn FnMut(Phase)) {
        self.prepare();
        observe(Phase::Prepared);
        let touched = std::mem::take(&mut self.decided.touched);
        let touched = phase1::assign(&mut self.world, &mut self.scratch, touched);
        observe(Phase::Phase1);
        let short = self.short_of(&touched);
        let mut standing = Standing::after(&self.world, &short);
        let inversions = &mut self.inversions;
        phase2::invert(&mut self.world, &short, &mut standing, &self.options, now, inversions);
        observe(Phase::Phase2);
        let decided = &mut self.decided;
        decided.now = now;
        decided.reclaimed.clear();
        decided.released.clear();
        phase3::reclaim(&self.world, &mut standing, inversions, &mut decided.reclaimed);
        phase3::release(&self.world, &self.release, now, &mut decided.released);
        self.world.let_outgrown_go();
        observe(Phase::Phase3);
        let world = &self.world;
        let judged = inversions.resolutions.drain(..).map(|one| Shortfall::of(world, one));
        decided.short.clear();
        decided.short.extend(judged);
        decided.touched = touched;
        self.short = short;
        self.conclude();
        if self.afresh {
            self.last_full = Some(FullPass { cycle: self.cycle, at: now });
        }
        self.cycle += 1;
        self.look_for_drift();
    }

    /// An engine that decides needs alike, to try something on. It knows neither ids
    /// nor hosts, and releases nothing.
    pub(crate) fn for_a_cycle(&self) -> Self {
        Self {
            world: self.world.for_a_cycle(),
            options: self.options,
            release: self.release,
            inversions: self.inversions.clone(),
            decided: Decided { restless: self.decided.restless.clone(), ..Decided::default() },
            drifted: self.drifted,
            // Neither the first nor one that decides everything anew: that would
            // come to the same.
            cycle: 1,
            last_full: Some(FullPass::default()),
            ..Self::default()
        }
    }

    /// Puts what changed in its place, and everything in question where a full
    /// pass is due. A cycle begins with it; by itself it decides nothing.
    pub fn prepare(&mut self) {
        let drifted = self.forget_drift();
        self.world.reconsider_gangs();
        self.world.seat();
        self.world.rank_names();
        // Before restless needs join, which have not changed.
        let scope = if drifted { Scope::Afresh } else { self.scope() };
        self.decided.arrived.clear();
        self.afresh = scope == Scope::Afresh;
        self.world.unready.retain(|need| {
            let row = &mut self.world.needs[*need];
            row.listed_unready = row.unready > 0;
            if !row.listed_unready {
                self.decided.arrived.push(*need);
            }
            row.listed_unready
        });
        for unit in std::mem::take(&mut self.decided.restless) {
            if self.world.is_live(unit) {
                self.world.enqueue(unit);
            }
        }
        if scope != Scope::Changes {
            self.touch_everything(scope);
        }
    }

    /// The next cycle decides everything anew.
    pub fn question_everything(&mut self) {
        self.full_next = true;
    }

    fn touch_everything(&mut self, scope: Scope) {
        let needs: Vec<PreparedIx> = self.world.needs.handles().collect();
        for need in needs {
            let row = &self.world.needs[need];
            if !row.removed && !row.is_fold() {
                self.world.touch(need);
                if scope == Scope::Afresh {
                    self.world.start_afresh(need);
                }
            }
        }
    }

    /// Decided needs that something is missing of, in serving order.
    fn short_of(&mut self, decided: &[PreparedIx]) -> Vec<PreparedIx> {
        let world = &self.world;
        let mut short = std::mem::take(&mut self.short);
        short.clear();
        short.extend(decided.iter().filter(|need| !world.needs[**need].is_covered()));
        world.sort_by_order(&mut short, &mut self.scratch.turns);
        short
    }

    /// Remembers what the next cycle needs: ages, and who must be asked again.
    fn conclude(&mut self) {
        let decided = &mut self.decided;
        for (at, short) in decided.short.iter().enumerate() {
            self.world.needs[short.need].short = Some(at as u32);
        }
        decided.acquiring.clear();
        for &need in &decided.touched {
            let row = &mut self.world.needs[need];
            let short = row.short.map(|at| &decided.short[at as usize]);
            row.age = next_age(row, short);
            if !row.picks.is_empty() {
                decided.acquiring.push(need);
            }
            // The age of a gang that folded is forgotten.
            if let Some(gangs) = row.gangs.filter(|_| row.is_fold()) {
                for member in &self.world.gangs[gangs].folded {
                    self.world.needs[*member].age = 0;
                }
            }
            let unit = match self.world.needs[need].gangs {
                Some(gangs) => {
                    Some(Unit::Gangs(gangs)).filter(|_| !self.world.gangs[gangs].settled)
                }
                None => Some(Unit::Need(need)).filter(|_| !self.world.needs[need].settled),
            };
            decided.restless.extend(unit);
        }
    }

    pub(crate) fn stamp_of(&self, need: PreparedIx) -> Stamp {
        let row = &self.world.needs[need];
        let profile = &self.world.profiles[row.profile].profile;
        Stamp {
            priority: Some(profile.priority()),
            interruption: profile.interruption().dollars(),
            reclamation: profile.reclamation().dollars(),
            fingerprint: profile.fingerprint().clone(),
            group: self.world.group(row).clone(),
            for_cluster: Some(self.world.names.clusters[row.cluster].id.clone()),
        }
    }
}
