//! One thing that happens.

use std::time::Duration;

use bigfleet_coordinator::{reports::Rejected, state::Command};
use bigfleet_model::{MachineId, MachineState};
use bigfleet_wire::v1alpha1::instruct_ack::Outcome;

use crate::{
    World,
    provider::{Answer, Call},
    shard::{Act, Hold, unanswered},
    tier::{Progress, Unanswered},
    world::{Flying, Place, Rpc},
};

/// Whatever can happen. Numbers of messages are their places in the list of all of them.
#[derive(Clone, Debug)]
pub enum Step {
    /// Time passes.
    Pass(Duration),
    /// A shard reports, unless a report of its is under way.
    Report(usize),
    /// A message of a report gets one step further; true: to the old leader.
    Forward(usize, bool),
    /// All of them up to the answer, at once; true: by the old leader.
    Deliver(usize, bool),
    /// The network sends a report twice.
    Double(usize),
    /// The network loses a message, or its sender no longer waits.
    Lose(usize),
    /// A shard's disk has what was written.
    Write(usize),
    /// A shard looks at what time brought about; true: as if all of it had waited long.
    Tend(usize, bool),
    /// A shard begins a List.
    BeginList(usize),
    /// The provider tells it.
    Read(usize),
    /// The shard takes it in.
    Merge(usize),
    /// A shard decides something about a machine.
    Act(usize, MachineId, Act),
    /// A shard's worker takes the action.
    Send(usize, MachineId),
    /// A call, or its answer, arrives.
    Arrive(usize),
    /// A call is lost on its way, or its answer is.
    Drop(usize),
    /// The caller no longer waits; the call goes on.
    Abandon(usize),
    /// What the provider does to a machine is done.
    Finish(MachineId),
    /// A machine fails.
    Fail(MachineId),
    /// A failed machine is repaired.
    Repair(MachineId),
    /// A shard speaks its first words to the provider.
    Announce(usize),
    /// A process dies.
    Crash(usize),
    /// A process starts.
    Start(usize),
    /// A process and its disk are gone; another volume is empty.
    LoseDisk(usize),
    /// A shard is removed for good: its process is gone, its calls are over, its volume is
    /// empty.
    Remove(usize),
    /// Somebody commits a command.
    Commit(Box<Command>),
    /// Another replica leads; true: the one before goes on for a while.
    NewLeader(bool),
    /// The leader's upkeep.
    Upkeep,
    /// A backup is made.
    Backup,
    /// It is restored; true: the fleet from before goes on.
    Restore(bool),
    /// Whoever was deposed or superseded finds out.
    EndOld,
}

impl World {
    /// Does it, and looks whether anything is broken.
    pub fn step(&mut self, step: Step) -> Result<(), String> {
        self.apply(step)?;
        self.check()
    }

    fn apply(&mut self, step: Step) -> Result<(), String> {
        let now = self.now;
        match step {
            Step::Pass(time) => self.pass(time),
            Step::Report(shard) => self.report(shard)?,
            Step::Forward(at, old) => self.forward(at, old),
            Step::Deliver(at, old) => {
                while self.rpcs.get(at).is_some_and(|rpc| !matches!(rpc.at, Place::Answering(_))) {
                    self.forward(at, old);
                }
            }
            Step::Double(at) => {
                let asking = |rpc: &&Rpc| matches!(rpc.at, Place::Asking(_));
                let copy = self.rpcs.get(at).filter(asking).cloned();
                self.rpcs.extend(copy);
            }
            Step::Lose(at) => {
                if at < self.rpcs.len() {
                    let rpc = self.rpcs.remove(at);
                    self.missed(&rpc, false);
                }
            }
            Step::Write(shard) => self.shards[shard].written()?,
            Step::Tend(shard, all_due) => {
                let over = self.over(shard);
                self.shards[shard].tend(now, all_due, |machine, hold| over(machine, hold, now));
            }
            Step::BeginList(shard) => self.with(shard, |process| process.begin_list(now)),
            Step::Read(shard) => {
                let records = self.provider.machines().cloned().collect();
                self.with(shard, |process| process.read(records));
            }
            Step::Merge(shard) => {
                let over = self.over(shard);
                self.with(shard, |process| process.merge(over));
            }
            Step::Act(shard, machine, act) => {
                let buys = matches!(act, Act::Create(_));
                if buys && !self.shards[shard].may_buy(&machine) {
                    return Ok(());
                }
                self.with(shard, |process| process.act(&machine, act));
                if buys {
                    self.within_its_share(shard, &machine)?;
                }
            }
            Step::Send(shard, machine) => self.send(shard, &machine),
            Step::Arrive(at) => self.arrive(at),
            Step::Drop(at) => {
                if at < self.calls.len() {
                    let flying = self.calls.remove(at);
                    self.answer(&flying, None);
                }
            }
            Step::Abandon(at) => {
                if let Some(flying) = self.calls.get_mut(at) {
                    flying.abandoned = true;
                    let flying = flying.clone();
                    self.answer(&flying, None);
                }
            }
            Step::Finish(machine) => self.provider.finish(&machine),
            Step::Fail(machine) => self.provider.fail(&machine),
            Step::Repair(machine) => self.provider.repair(&machine),
            Step::Announce(shard) => self.announce(shard)?,
            Step::Crash(shard) => self.shards[shard].crash(),
            Step::Start(shard) => {
                if self.shards[shard].process.is_none() {
                    self.shards[shard].start()?;
                }
            }
            Step::LoseDisk(shard) => {
                // What it let go of is forgotten with it.
                self.ghost.let_go.retain(|(other, _), _| *other != shard);
                self.gone(shard);
            }
            Step::Remove(shard) => self.remove(shard),
            Step::Commit(command) => drop(self.tier.commit(&command, now)),
            Step::NewLeader(unaware) => {
                if unaware && self.old.is_none() {
                    self.old = Some(self.tier.unaware());
                }
                self.tier.new_leader(now);
            }
            Step::Upkeep => {
                let begun = self.tier.upkeep(now);
                self.ghost.begun += begun.len() as u64;
                begun.iter().try_for_each(|command| self.crosses(command))?;
            }
            Step::Backup => self.backup = Some(self.tier.state.clone()),
            Step::Restore(goes_on) => {
                if let Some(backup) = &self.backup {
                    let tier = self.tier.restored(backup, now);
                    let before = std::mem::replace(&mut self.tier, tier);
                    self.old = goes_on.then_some(before);
                    for rpc in &mut self.rpcs {
                        if let Place::Working(old, _) = &mut rpc.at {
                            *old = true;
                        }
                    }
                }
            }
            Step::EndOld => {
                self.old = None;
                let old = |rpc: &Rpc| matches!(rpc.at, Place::Working(true, _));
                let (ended, rest) = std::mem::take(&mut self.rpcs).into_iter().partition(old);
                self.rpcs = rest;
                let ended: Vec<Rpc> = ended;
                ended.iter().for_each(|rpc| self.missed(rpc, false));
            }
        }
        Ok(())
    }

    fn with(&mut self, shard: usize, change: impl FnOnce(&mut crate::shard::Process)) {
        if let Some(process) = self.shards[shard].process.as_mut() {
            change(process);
        }
    }

    /// Whether a call without an answer can no longer arrive: with a clock, because its
    /// time is over.
    fn over(&self, shard: usize) -> impl Fn(&MachineId, &Hold, Duration) -> bool + use<> {
        let flying: Vec<(MachineId, i64)> = match self.timeless {
            true => {
                let ours = self.calls.iter().filter(|one| one.shard == shard);
                ours.map(|one| (one.call.machine.clone(), one.call.token.sequence)).collect()
            }
            false => Vec::new(),
        };
        let (timeless, unanswered) = (self.timeless, unanswered());
        move |machine, hold, at| match timeless {
            true => !flying.contains(&(machine.clone(), hold.sequence)),
            false => at >= hold.sent + unanswered,
        }
    }

    /// Time passes, but a call does not outlive its time: it arrives in it, or never.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        let (now, unanswered) = (self.now, unanswered());
        let late = |flying: &Flying| flying.sent + unanswered <= now;
        let (late, rest) = std::mem::take(&mut self.calls).into_iter().partition(late);
        self.calls = rest;
        let late: Vec<Flying> = late;
        late.iter().for_each(|flying| self.answer(flying, None));
    }

    fn report(&mut self, shard: usize) -> Result<(), String> {
        let one = &mut self.shards[shard];
        let Some(process) = &one.process else { return Ok(()) };
        if process.waits_for.is_some() || process.is_busy() {
            return Ok(());
        }
        let epoch = process.epoch;
        let Some(report) = one.report() else { return Ok(()) };
        self.same_as_before(shard, &report)?;
        for shortfall in &report.shortfalls {
            if shortfall.requirements.iter().all(|one| !is_same(one.operator)) {
                let lacked = self.ghost.lacked.entry(shard).or_default();
                lacked.insert(crate::check::requirements(&shortfall.requirements));
            }
        }
        let cycle = report.cycle;
        self.rpcs.push(Rpc { shard, epoch, cycle, at: Place::Asking(Box::new(report)) });
        Ok(())
    }

    fn forward(&mut self, at: usize, to_old: bool) {
        if at >= self.rpcs.len() {
            return;
        }
        let now = self.now;
        let mut rpc = self.rpcs.remove(at);
        let (old, progress) = match rpc.at {
            Place::Asking(report) => {
                let old = to_old && self.old.is_some();
                let tier = self.old.as_mut().filter(|_| old).unwrap_or(&mut self.tier);
                let working = tier.accept(*report);
                (old, tier.work(working, now))
            }
            Place::Working(old, working) => {
                let tier = self.old.as_mut().filter(|_| old).unwrap_or(&mut self.tier);
                (old, tier.work(*working, now))
            }
            Place::Answering(answer) => {
                let alive = self.is_current(rpc.shard, rpc.epoch);
                match answer {
                    Ok(ack) if alive => self.shards[rpc.shard].answered(rpc.cycle, *ack),
                    Err(why) if alive => {
                        let stale =
                            matches!(why, Unanswered::Rejected(Rejected::StaleEpoch { .. }));
                        self.shards[rpc.shard].missed(rpc.cycle, stale);
                    }
                    Ok(_) | Err(_) => {}
                }
                return;
            }
        };
        rpc.at = match progress {
            Progress::Working(working) => Place::Working(old, working),
            Progress::Answered(ack) => Place::Answering(Ok(ack)),
            Progress::Unanswered(why) => Place::Answering(Err(why)),
        };
        self.rpcs.insert(at, rpc);
    }

    fn is_current(&self, shard: usize, epoch: i64) -> bool {
        self.shards[shard].process.as_ref().is_some_and(|process| process.epoch == epoch)
    }

    fn missed(&mut self, rpc: &Rpc, stale: bool) {
        let twin = |other: &Rpc| {
            (other.shard, other.epoch, other.cycle) == (rpc.shard, rpc.epoch, rpc.cycle)
        };
        // Its copy is still on its way.
        if self.is_current(rpc.shard, rpc.epoch) && !self.rpcs.iter().any(twin) {
            self.shards[rpc.shard].missed(rpc.cycle, stale);
        }
    }

    fn send(&mut self, shard: usize, machine: &MachineId) {
        let now = self.now;
        let one = &mut self.shards[shard];
        let Some(process) = one.process.as_mut() else { return };
        if let Some(call) = process.send(&one.id, machine, now) {
            self.calls.push(Flying { shard, call, sent: now, answer: None, abandoned: false });
        }
    }

    fn arrive(&mut self, at: usize) {
        let Some(flying) = self.calls.get_mut(at) else { return };
        if flying.answer.is_some() {
            let flying = self.calls.remove(at);
            self.answer(&flying, flying.answer.clone());
            return;
        }
        let starts = self.provider.would_start(&flying.call);
        flying.answer = Some(self.provider.arrive(&flying.call));
        if starts {
            let (machine, shard) = (flying.call.machine.clone(), flying.shard);
            *self.ghost.taken.entry(machine).or_default().entry(shard).or_default() += 1;
        }
        if flying.abandoned {
            self.calls.remove(at);
        }
    }

    /// A caller hears an answer, or that there is none.
    fn answer(&mut self, flying: &Flying, answer: Option<Answer>) {
        let call: &Call = &flying.call;
        if self.is_current(flying.shard, call.token.epoch) {
            let truth = self.provider.machine(&call.machine).cloned();
            self.with(flying.shard, |process| process.called(call, answer, truth.as_ref()));
        }
    }

    fn announce(&mut self, shard: usize) -> Result<(), String> {
        let one = &mut self.shards[shard];
        let Some(process) = one.process.as_mut().filter(|process| !process.announced) else {
            return Ok(());
        };
        match self.provider.announce(&one.id, process.epoch) {
            None => process.latched = true,
            Some(true) => process.announced = true,
            Some(false) => return Err("the provider is not strict".to_owned()),
        }
        Ok(())
    }

    fn remove(&mut self, shard: usize) {
        if self.calls.iter().any(|flying| flying.shard == shard) {
            return;
        }
        self.ghost.let_go.retain(|(other, _), _| *other != shard);
        self.gone(shard);
        let id = self.shards[shard].id.as_str().into();
        drop(self.tier.commit(&Command::RemoveShard { id }, self.now));
    }

    /// A report lives for ten seconds at most, and no volume is replaced in that time.
    fn gone(&mut self, shard: usize) {
        self.rpcs.retain(|rpc| rpc.shard != shard);
        self.shards[shard].lose_disk();
    }

    /// Whether something is under way at the provider on a machine.
    #[must_use]
    pub fn is_moving(&self, machine: &str) -> bool {
        use MachineState::{Configuring, Creating, Deleting, Draining};
        let state = self.provider.machine(machine).map(|machine| machine.state);
        matches!(state, Some(Configuring | Creating | Deleting | Draining))
    }
}

pub(crate) fn is_same(operator: i32) -> bool {
    operator == i32::from(bigfleet_wire::v1alpha1::node_selector_requirement::Operator::Same)
}

/// Whether an ack says that machines were let go of.
pub(crate) fn is_accepted(outcome: i32) -> bool {
    outcome == i32::from(Outcome::Accepted)
}
