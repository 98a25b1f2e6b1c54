//! What tells two states of a world apart.
//!
//! Numbers that are only ever compared are told by their order: an index of the log, a
//! version, a sequence number of a call. Whatever is numbered next comes after all of
//! them, so that worlds which differ in nothing else go the same ways, and one of them is
//! enough. (With a restore in the search this would not hold: it sets an index back.)

use std::{
    collections::{BTreeSet, hash_map::DefaultHasher},
    fmt::Write,
    hash::{Hash, Hasher},
};

use bigfleet_coordinator::state::State;
use bigfleet_shard::holdings::{Assignment, Holdings};

use crate::{
    World,
    search::Limits,
    shard::{Process, Shard},
    tier::Tier,
    world::{Place, Rpc},
};

/// What the numbers of one shard are compared with.
pub(crate) struct Order {
    /// Indexes of the log: a version counts by how many of them it knows. Those of marks
    /// on this shard and of its Assignment's last change, and the end of an old leader's
    /// log, which refuses whoever knows more.
    marks: BTreeSet<u64>,
    /// Versions of its Assignments: an older one is refused.
    versions: BTreeSet<u64>,
    /// Its calls, by epoch and sequence number.
    calls: BTreeSet<(i64, i64)>,
}

impl Order {
    /// The place of an index that a version is compared with.
    fn mark(&self, index: u64) -> usize {
        self.marks.range(..=index).count()
    }

    /// How much a version knows, and its place among the versions.
    pub(crate) fn version(&self, version: i64) -> (usize, usize) {
        let version = whole(version);
        (self.mark(version), self.versions.range(..version).count())
    }

    /// The place of a call.
    pub(crate) fn call(&self, epoch: i64, sequence: i64) -> usize {
        self.calls.range(..(epoch, sequence)).count()
    }
}

fn whole(version: i64) -> u64 {
    u64::try_from(version).unwrap_or_default()
}

impl World {
    /// Equal for states from which the same can follow.
    pub(crate) fn key(&self, limits: &Limits) -> u128 {
        let mut text = String::with_capacity(4096);
        // Nothing can fail: it is all written to memory.
        let _ = self.describe(&mut text);
        let left = (limits.commands.len(), limits.crashes, limits.disks, limits.losses);
        let more = (limits.doubles, limits.leaders, limits.acts);
        let _ = write!(text, "{left:?} {more:?} {:?}", (limits.slow_reports, limits.slow_lists));
        let half = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            text.hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }

    fn tiers(&self) -> impl Iterator<Item = &Tier> {
        [Some(&self.tier), self.old.as_ref()].into_iter().flatten()
    }

    fn order(&self, number: usize) -> Order {
        let shard = &self.shards[number];
        let mut marks = BTreeSet::new();
        for state in self.tiers().map(|tier| &tier.state) {
            marks.extend(state.shard(&shard.id).map(|shard| shard.changed_at));
            marks.extend(state.releasing_from(&shard.id).map(|(_, since)| since));
        }
        marks.extend(self.old.as_ref().map(|old| old.state.applied_index() + 1));
        let mut versions = BTreeSet::from([whole(shard.holdings.version())]);
        let mut calls = BTreeSet::new();
        if let Some(process) = &shard.process {
            let mut version = |version| {
                versions.insert(whole(version));
            };
            process.numbers(&mut version, &mut calls);
        }
        for rpc in self.rpcs.iter().filter(|rpc| rpc.shard == number) {
            let version = match &rpc.at {
                Place::Asking(report) => Some(report.assignment_version),
                Place::Answering(Ok(ack)) => ack.assignment.as_ref().map(|one| one.version),
                Place::Working(..) | Place::Answering(Err(_)) => None,
            };
            versions.extend(version.map(whole));
        }
        for flying in self.calls.iter().filter(|flying| flying.shard == number) {
            calls.insert((flying.call.token.epoch, flying.call.token.sequence));
        }
        Order { marks, versions, calls }
    }

    fn describe(&self, text: &mut String) -> std::fmt::Result {
        for machine in self.provider.machines() {
            let known = self.provider.recorded(&machine.id);
            write!(text, "{} {:?} {:?} {known:?};", machine.id, machine.state, machine.cluster)?;
        }
        let orders: Vec<Order> = (0..self.shards.len()).map(|shard| self.order(shard)).collect();
        for tier in self.tiers() {
            self.describe_tier(text, tier, &orders)?;
        }
        for (shard, order) in self.shards.iter().zip(&orders) {
            write!(text, "\n{} {:?} ", shard.id, self.provider.epoch(&shard.id))?;
            describe_shard(text, shard, order)?;
        }
        let describe = |rpc: &Rpc| self.describe_rpc(rpc, &orders[rpc.shard]);
        let mut messages: Vec<String> = self.rpcs.iter().map(describe).collect::<Result<_, _>>()?;
        for flying in &self.calls {
            let call = &flying.call;
            let place = orders[flying.shard].call(call.token.epoch, call.token.sequence);
            let said =
                (call.token.epoch, place, call.kind, &call.machine, &call.cluster, &call.stamp);
            let answer = (&flying.answer, flying.abandoned, self.provider.verdict(call));
            messages.push(format!("{} {said:?} {answer:?}", flying.shard));
        }
        messages.sort_unstable();
        messages.iter().try_for_each(|message| writeln!(text, "{message}"))?;
        // What a donor let go of once must be the same from then on.
        write!(text, "{:?}", self.ghost.let_go)
    }

    fn describe_tier(&self, text: &mut String, tier: &Tier, orders: &[Order]) -> std::fmt::Result {
        let state: &State = &tier.state;
        write!(text, "\n{} ", tier.term())?;
        for (key, row) in state.rows() {
            write!(text, "{key} {:?} ", row.owner)?;
            if let Some(mark) = &row.releasing {
                let from = self.shards.iter().position(|shard| *shard.id == *mark.from);
                let since = from.map(|from| orders[from].mark(mark.since));
                write!(text, "{} {since:?}", mark.from)?;
            }
            write!(text, ";")?;
        }
        for (id, transfer) in state.transfers() {
            write!(text, "{id} {:?} {:?};", transfer.phase, transfer.machine_ids)?;
        }
        for (shard, order) in self.shards.iter().zip(orders) {
            let Some(known) = state.shard(&shard.id) else { continue };
            let heard = tier.last_report(&shard.id).map(|(epoch, _)| epoch);
            let changed = order.mark(known.changed_at);
            write!(text, "{} {} {changed} {heard:?};", shard.id, known.epoch)?;
        }
        Ok(())
    }

    /// Of cycles only the order counts, and whether somebody waits for the answer.
    fn describe_rpc(&self, rpc: &Rpc, order: &Order) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let alike = |other: &&Rpc| (other.shard, other.epoch) == (rpc.shard, rpc.epoch);
        let rank = self.rpcs.iter().filter(alike).filter(|other| other.cycle < rpc.cycle).count();
        let shard = &self.shards[rpc.shard];
        let waits = shard.process.as_ref().is_some_and(|process| {
            process.epoch == rpc.epoch && process.waits_for == Some(rpc.cycle)
        });
        let fresh = |tier: &Tier| {
            let last = tier.last_report(&shard.id);
            last.is_none_or(|(epoch, cycle)| rpc.epoch > epoch || rpc.cycle > cycle)
        };
        let fresh = (fresh(&self.tier), self.old.as_ref().map(fresh));
        write!(text, "{} {} {rank} {waits} {fresh:?} ", rpc.shard, rpc.epoch)?;
        match &rpc.at {
            Place::Asking(report) => {
                let mut report = report.clone();
                report.cycle = 0;
                report.summary = None;
                let version = order.version(std::mem::take(&mut report.assignment_version));
                write!(text, "{version:?} {report:?}")?;
            }
            Place::Working(..) => write!(text, "working")?,
            Place::Answering(Err(why)) => write!(text, "{why:?}")?,
            Place::Answering(Ok(ack)) => {
                let mut ack = ack.clone();
                let assignment = ack.assignment.as_mut();
                let version = assignment.map(|one| order.version(std::mem::take(&mut one.version)));
                write!(text, "{version:?} {ack:?}")?;
            }
        }
        Ok(text)
    }
}

fn describe_shard(text: &mut String, shard: &Shard, order: &Order) -> std::fmt::Result {
    write!(text, "{} ", shard.disk.epoch)?;
    describe_holdings(text, &shard.holdings, order)?;
    shard.process.as_ref().map_or(Ok(()), |process| process.describe(text, order))
}

pub(crate) fn describe_holdings(
    text: &mut String,
    holdings: &Holdings,
    order: &Order,
) -> std::fmt::Result {
    let Holdings { fleet, term, assignment, releasing, settled, out } = holdings;
    write!(text, "{fleet:?} {term} {releasing:?} {settled:?} {out:?} ")?;
    let Some(assignment) = assignment else { return Ok(()) };
    let Assignment { version, digest, held, machines_in, machines_out, slices, open_transfers } =
        assignment;
    let version = order.version(*version);
    write!(text, "{version:?} {digest} {held:?} {machines_in:?} {machines_out:?} {slices:?} ")?;
    write!(text, "{open_transfers:?} ")
}

impl Process {
    fn describe(&self, text: &mut String, order: &Order) -> std::fmt::Result {
        let cycle = format!("cycle: {}", self.memory.cycle());
        let memory = format!("{:?}", self.memory).replace(&cycle, "");
        write!(text, "{memory} {:?}", (self.announced, self.opening.is_open(), self.latched))?;
        self.describe_rest(text, order)
    }
}
