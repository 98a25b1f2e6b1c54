//! Every way through a small world without a clock. States are told apart by all that can
//! make a difference later: cycles of reports by their order alone, and nothing of what a
//! leader only caches.

use std::{collections::HashSet, sync::Arc};

use bigfleet_coordinator::state::{Command, TransferPhase};
use bigfleet_model::{ClusterId, MachineState, Stamp};

use crate::{Act, Step, World, world::Place};

/// What may happen besides what must.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Commands, in this order, at any time.
    pub commands: Vec<Command>,
    /// Processes that die.
    pub crashes: usize,
    /// Of these, processes whose disk is lost with them.
    pub disks: usize,
    /// Messages that are lost.
    pub losses: usize,
    /// Reports that arrive twice.
    pub doubles: usize,
    /// Changes of the leader; the one before goes on for as long as it likes.
    pub leaders: usize,
    /// Actions of shards on machines.
    pub acts: usize,
    /// Reports that are on their way for as long as they like; all others are answered at
    /// once.
    pub slow_reports: usize,
    /// Lists that are on their way for as long as they like.
    pub slow_lists: usize,
    /// Only so many states are looked at; 0 for all.
    pub states: usize,
    /// From every so many states everything must settle; 0 for none.
    pub settle_every: usize,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// States.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// States from which everything was let settle.
    pub settled: usize,
    /// Whether these are all.
    pub complete: bool,
}

struct Node {
    world: World,
    limits: Limits,
    trail: usize,
}

/// Goes every way; what is broken comes with the way there.
pub fn search(start: World, limits: Limits) -> Result<Found, String> {
    let bound = limits.states;
    let every = limits.settle_every;
    let mut found = Found { complete: true, ..Found::default() };
    let mut seen = HashSet::new();
    let mut trail: Vec<(usize, Vec<Step>)> = vec![(0, Vec::new())];
    seen.insert(start.key(&limits));
    let mut stack = vec![Node { world: start, limits, trail: 0 }];
    while let Some(node) = stack.pop() {
        found.states += 1;
        if every > 0 && found.states.is_multiple_of(every) {
            found.settled += 1;
            let mut end = node.world.clone();
            end.settle().map_err(|broken| told(&trail, node.trail, &broken))?;
        }
        for (steps, limits) in node.world.ways(&node.limits) {
            found.steps += 1;
            let mut world = node.world.clone();
            let outcome = steps.iter().try_for_each(|step| world.step(step.clone()));
            trail.push((node.trail, steps));
            let at = trail.len() - 1;
            outcome.map_err(|broken| told(&trail, at, &broken))?;
            if !seen.insert(world.key(&limits)) {
                trail.pop();
                continue;
            }
            if bound > 0 && seen.len() > bound {
                found.complete = false;
                return Ok(found);
            }
            stack.push(Node { world, limits, trail: at });
        }
    }
    Ok(found)
}

fn told(trail: &[(usize, Vec<Step>)], mut at: usize, broken: &str) -> String {
    let mut steps = Vec::new();
    while at > 0 {
        let (before, way) = &trail[at];
        steps.extend(way.iter().rev().map(|step| format!("{step:?}")));
        at = *before;
    }
    steps.reverse();
    format!("{broken}\nafter {} steps:\n{}", steps.len(), steps.join("\n"))
}

impl World {
    /// What may happen next, and what may happen after that.
    fn ways(&self, limits: &Limits) -> Vec<(Vec<Step>, Limits)> {
        let mut ways = Vec::new();
        let mut free = |steps: Vec<Step>| ways.push((steps, limits.clone()));
        for shard in 0..self.shards.len() {
            self.free_of(shard, &mut free);
        }
        for (at, rpc) in self.rpcs.iter().enumerate() {
            match rpc.at {
                Place::Asking(_) => {
                    free(vec![Step::Deliver(at, false)]);
                    if self.old.is_some() {
                        free(vec![Step::Deliver(at, true)]);
                    }
                }
                Place::Working(..) | Place::Answering(_) => free(vec![Step::Forward(at, false)]),
            }
        }
        for at in 0..self.calls.len() {
            free(vec![Step::Arrive(at)]);
        }
        for machine in self.machines().into_iter().filter(|machine| self.is_moving(machine)) {
            free(vec![Step::Finish(machine)]);
        }
        // Its time is over, by a leader's clock.
        for (id, transfer) in self.tier.state.transfers() {
            if transfer.phase == TransferPhase::Releasing {
                free(vec![commit(&Command::EndTransfer { id: id.clone() })]);
            }
        }
        if self.old.is_some() {
            free(vec![Step::EndOld]);
        }
        for shard in 0..self.shards.len() {
            if self.shards[shard].process.is_some() {
                self.paid_of(shard, limits, &mut ways);
            }
        }
        self.mishaps(limits, &mut ways);
        ways
    }

    /// What a shard may do at any time.
    fn free_of(&self, number: usize, free: &mut impl FnMut(Vec<Step>)) {
        let shard = &self.shards[number];
        let Some(process) = &shard.process else {
            free(vec![Step::Start(number)]);
            return;
        };
        if !process.announced {
            free(vec![Step::Announce(number)]);
        }
        if process.waits_for.is_none() && !process.is_busy() {
            let at = self.rpcs.len();
            free(vec![Step::Report(number), Step::Deliver(at, false), Step::Forward(at, false)]);
        }
        if process.writing.is_some() {
            free(vec![Step::Write(number)]);
        } else {
            free(vec![Step::Tend(number, false)]);
            free(vec![Step::Tend(number, true)]);
        }
        match &process.listing {
            None => free(vec![Step::BeginList(number), Step::Read(number), Step::Merge(number)]),
            Some(listing) if listing.records.is_none() => free(vec![Step::Read(number)]),
            Some(_) => free(vec![Step::Merge(number)]),
        }
        for machine in shard.queued() {
            free(vec![Step::Send(number, machine)]);
        }
        for machine in shard.drains_to_begin() {
            free(vec![Step::Act(number, machine, Act::Drain)]);
        }
    }

    /// What a shard may do so many times.
    fn paid_of(&self, number: usize, limits: &Limits, ways: &mut Vec<(Vec<Step>, Limits)>) {
        if limits.crashes > 0 {
            let less = Limits { crashes: limits.crashes - 1, ..limits.clone() };
            ways.push((vec![Step::Crash(number)], less));
        }
        // A fresh disk has no fleet: it would follow whoever answers first.
        if limits.disks > 0 && self.old.is_none() {
            let less = Limits { disks: limits.disks - 1, leaders: 0, ..limits.clone() };
            ways.push((vec![Step::LoseDisk(number)], less));
        }
        let Some(process) = self.shards[number].process.as_ref() else { return };
        if limits.slow_reports > 0 && process.waits_for.is_none() && !process.is_busy() {
            let less = Limits { slow_reports: limits.slow_reports - 1, ..limits.clone() };
            ways.push((vec![Step::Report(number)], less));
        }
        if limits.slow_lists > 0 && process.listing.is_none() {
            let less = Limits { slow_lists: limits.slow_lists - 1, ..limits.clone() };
            ways.push((vec![Step::BeginList(number), Step::Read(number)], less));
        }
        if limits.acts == 0 {
            return;
        }
        let less = Limits { acts: limits.acts - 1, ..limits.clone() };
        let clusters: Vec<ClusterId> = self
            .shards
            .iter()
            .filter_map(|shard| shard.holdings.held())
            .flat_map(|held| held.clusters.iter().cloned())
            .collect();
        for (machine, entry) in &process.desk {
            let acts = match entry.record.state {
                MachineState::Speculative => vec![Act::Create(None)],
                MachineState::Configured => vec![Act::Drain],
                // A Delete is as good as a Configure to whoever else could have the machine.
                MachineState::Idle => {
                    let stamp = Arc::new(Stamp { priority: Some(0), ..Stamp::default() });
                    clusters.iter().map(|one| Act::Configure(one.clone(), stamp.clone())).collect()
                }
                _ => Vec::new(),
            };
            for act in acts.into_iter().filter(|act| process.may_act(machine, act)) {
                ways.push((vec![Step::Act(number, machine.clone(), act)], less.clone()));
            }
        }
    }

    /// What the network, the leader and the operator may do so many times.
    fn mishaps(&self, limits: &Limits, ways: &mut Vec<(Vec<Step>, Limits)>) {
        if limits.losses > 0 {
            let less = Limits { losses: limits.losses - 1, ..limits.clone() };
            let rpcs = (0..self.rpcs.len()).map(Step::Lose);
            let calls = (0..self.calls.len()).flat_map(|at| [Step::Drop(at), Step::Abandon(at)]);
            ways.extend(rpcs.chain(calls).map(|step| (vec![step], less.clone())));
        }
        if limits.doubles > 0 {
            let less = Limits { doubles: limits.doubles - 1, ..limits.clone() };
            let asking = self.rpcs.iter().enumerate();
            let asking = asking.filter(|(_, rpc)| matches!(rpc.at, Place::Asking(_)));
            ways.extend(asking.map(|(at, _)| (vec![Step::Double(at)], less.clone())));
        }
        if limits.leaders > 0 {
            let less = Limits { leaders: limits.leaders - 1, ..limits.clone() };
            ways.push((vec![Step::NewLeader(true)], less));
        }
        if let Some((first, rest)) = limits.commands.split_first() {
            let less = Limits { commands: rest.to_vec(), ..limits.clone() };
            ways.push((vec![commit(first)], less));
        }
    }
}

fn commit(command: &Command) -> Step {
    Step::Commit(Box::new(command.clone()))
}
