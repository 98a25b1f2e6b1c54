//! What tells two states of a world apart.

use std::{
    collections::hash_map::DefaultHasher,
    fmt::Write,
    hash::{Hash, Hasher},
};

use crate::{
    World,
    search::Limits,
    shard::{Process, Shard},
    tier::Tier,
    world::{Place, Rpc},
};

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

    fn describe(&self, text: &mut String) -> std::fmt::Result {
        for machine in self.provider.machines() {
            let known = self.provider.recorded(&machine.id);
            write!(text, "{} {:?} {:?} {known:?};", machine.id, machine.state, machine.cluster)?;
        }
        for tier in [Some(&self.tier), self.old.as_ref()].into_iter().flatten() {
            describe_tier(text, tier)?;
        }
        for shard in &self.shards {
            write!(text, "\n{} {:?} ", shard.id, self.provider.epoch(&shard.id))?;
            describe_shard(text, shard)?;
        }
        let mut messages: Vec<String> =
            self.rpcs.iter().map(|rpc| self.describe_rpc(rpc)).collect::<Result<_, _>>()?;
        for flying in &self.calls {
            let passes = self.provider.would_start(&flying.call);
            let answer = (&flying.answer, flying.abandoned, passes);
            messages.push(format!("{} {:?} {answer:?}", flying.shard, flying.call));
        }
        messages.sort_unstable();
        messages.iter().try_for_each(|message| writeln!(text, "{message}"))
    }

    /// Of cycles only the order counts, and whether somebody waits for the answer.
    fn describe_rpc(&self, rpc: &Rpc) -> Result<String, std::fmt::Error> {
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
                write!(text, "{report:?}")?;
            }
            Place::Working(..) => write!(text, "working")?,
            Place::Answering(answer) => write!(text, "{answer:?}")?,
        }
        Ok(text)
    }
}

fn describe_tier(text: &mut String, tier: &Tier) -> std::fmt::Result {
    let state = &tier.state;
    write!(text, "\n{} {} ", tier.term(), state.applied_index())?;
    for (key, row) in state.rows() {
        write!(text, "{key} {row:?};")?;
    }
    for (id, transfer) in state.transfers() {
        write!(text, "{id} {:?} {:?};", transfer.phase, transfer.machine_ids)?;
    }
    for (id, shard) in state.shards() {
        let heard = tier.last_report(id).map(|(epoch, _)| epoch);
        write!(text, "{id} {} {} {heard:?};", shard.epoch, shard.changed_at)?;
    }
    Ok(())
}

fn describe_shard(text: &mut String, shard: &Shard) -> std::fmt::Result {
    write!(text, "{} {:?}", shard.disk.epoch, shard.holdings)?;
    shard.process.as_ref().map_or(Ok(()), |process| process.describe(text))
}

impl Process {
    fn describe(&self, text: &mut String) -> std::fmt::Result {
        let cycle = format!("cycle: {}", self.memory.cycle());
        let memory = format!("{:?}", self.memory).replace(&cycle, "");
        write!(text, "{memory} {:?}", (self.announced, self.reported, self.latched))?;
        self.describe_rest(text)
    }
}
