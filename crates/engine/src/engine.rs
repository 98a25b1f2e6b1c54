//! The engine that remembers: it takes what changed and decides again what that
//! touches, with the same outcome as deciding everything anew (§11).

use bigfleet_model::{ClusterId, MachineId, Need, Stamp};

use crate::{
    action::Action,
    handle::{MachineIx, PreparedIx},
    input::{HeldBack, NeedKey, NoAcquire, Phase2Options, ReleasePolicy, Time, Tracked},
    phase1::{self, Scratch},
    phase2::{self, Standing, Victim},
    phase3,
    verdict::{Shortfall, next_age},
    world::{Unit, World},
};

/// Every so many cycles everything is decided anew.
const FULL_EVERY: u64 = 100;

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
    pub(crate) decided: Decided,
    cycle: u64,
    full_next: bool,
}

/// What the last cycle came to, in numbers.
#[derive(Default)]
pub(crate) struct Decided {
    pub(crate) now: Time,
    /// Needs that acquire something.
    pub(crate) acquiring: Vec<PreparedIx>,
    pub(crate) victims: Vec<Victim>,
    pub(crate) reclaimed: Vec<MachineIx>,
    pub(crate) released: Vec<MachineIx>,
    /// In serving order.
    pub(crate) short: Vec<Shortfall>,
    /// Everything that was decided this cycle.
    pub(crate) touched: Vec<PreparedIx>,
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
        let assigned = phase1::assign(&mut self.world, &mut self.scratch);
        observe(Phase::Phase1);
        let short = self.short_of(&assigned.decided);
        let mut standing = Standing::after(&self.world, &short);
        let inversions = phase2::invert(&mut self.world, &short, &mut standing, &self.options, now);
        observe(Phase::Phase2);
        let decided = &mut self.decided;
        decided.now = now;
        decided.reclaimed.clear();
        decided.released.clear();
        phase3::reclaim(&self.world, &mut standing, &inversions, &mut decided.reclaimed);
        phase3::release(&self.world, &self.release, now, &mut decided.released);
        observe(Phase::Phase3);
        decided.victims = inversions.victims;
        let world = &self.world;
        let judged = inversions.resolutions.into_iter().map(|one| Shortfall::of(world, one));
        decided.short = judged.collect();
        decided.touched = assigned.decided;
        self.conclude();
        self.cycle += 1;
    }

    /// Puts what changed in its place, and everything in question where a full
    /// pass is due.
    fn prepare(&mut self) {
        self.world.seat();
        self.world.rank_names();
        self.world.unready.retain(|need| {
            let row = &mut self.world.needs[*need];
            row.listed_unready = row.unready > 0;
            row.listed_unready
        });
        for unit in std::mem::take(&mut self.decided.restless) {
            let live = match unit {
                Unit::Need(need) => {
                    let row = &self.world.needs[need];
                    !row.removed && row.gangs.is_none()
                }
                Unit::Gangs(gangs) => !self.world.gangs[gangs].members.is_empty(),
            };
            if live {
                self.world.enqueue(unit);
            }
        }
        let due = self.cycle.is_multiple_of(FULL_EVERY);
        if std::mem::take(&mut self.full_next) || due {
            self.touch_everything();
        }
    }

    /// The next cycle decides everything anew.
    pub fn question_everything(&mut self) {
        self.full_next = true;
    }

    fn touch_everything(&mut self) {
        let needs: Vec<PreparedIx> = self.world.needs.handles().collect();
        for need in needs {
            let row = &self.world.needs[need];
            if !row.removed && !row.is_fold() {
                self.world.touch(need);
            }
        }
    }

    /// Decided needs that something is missing of, in serving order.
    fn short_of(&self, decided: &[PreparedIx]) -> Vec<PreparedIx> {
        let world = &self.world;
        let mut short: Vec<PreparedIx> =
            decided.iter().copied().filter(|need| !world.needs[*need].is_covered()).collect();
        short.sort_unstable_by(|a, b| {
            world
                .precedence(*b)
                .cmp(&world.precedence(*a))
                .then_with(|| world.serving_order(*a, *b))
        });
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
            if row.is_fold() {
                for at in 0..row.members.len() {
                    let member = self.world.needs[need].members[at];
                    self.world.needs[member].age = 0;
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
            group: row.group.clone(),
            for_cluster: Some(self.world.names.clusters[row.cluster].id.clone()),
        }
    }
}
