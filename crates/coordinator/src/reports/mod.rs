//! What a leader knows of shards and does not replicate (coordinator chapter §6, §7):
//! their last reports, when they were heard, what they are still to be told. Pure: a
//! report comes in, commands to commit and an answer come out. It dies with the
//! leadership and is rebuilt by the next reports.
//!
//! A report is taken in three steps, with commits between them: [`Reports::begin`] (is it
//! of this fleet, is its process known), [`Reports::take`] (what it says), and
//! [`Reports::answer`].

mod answer;
mod begin;
mod kept;
pub mod limits;
mod liveness;
mod pending;
mod take;
mod watch;
pub(crate) mod wire;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub use begin::{Begun, Rejected};
use bigfleet_wire::v1alpha1::ShardReportSnapshot;
pub use kept::Escalated;
use kept::Kept;
pub use liveness::{Liveness, LivenessLimits};
use pending::Instructions;
pub use take::{Refusal, Taken, batches};
use watch::Watch;

use crate::{
    dice::Dice,
    rebalance::{Heard, Picture},
    state::{ClusterId, Effect, Refused, ShardId, State, TransferId},
};

/// The two clocks of a leader: one that never jumps, for all that is waited for, and the
/// wall's, for what people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since any fixed instant.
    pub monotonic: Duration,
    /// Unix nanoseconds.
    pub unix_nanos: i64,
}

/// What is counted rather than answered; the service adds it to its metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reports of other fleets, of newer generations, or of a history that was lost.
    pub foreign_fleet: u64,
    /// Reports of a process that another one has succeeded.
    pub stale_epoch: u64,
    /// Clusters claimed by a second shard.
    pub binding_conflicts: u64,
    /// Holdings that another shard was found to have.
    pub adoption_conflicts: u64,
    /// Shortfalls that mean nothing.
    pub shortfalls_dropped: u64,
    /// Instructions that failed too often.
    pub instructions_given_up: u64,
}

/// The soft state of one leadership.
#[derive(Clone, Debug)]
pub struct Reports {
    term: i64,
    /// When it began, by the clock that never jumps.
    since: Duration,
    limits: LivenessLimits,
    /// Last one used.
    sequence: i64,
    /// For instruction ids.
    dice: Dice,
    shards: BTreeMap<ShardId, Soft>,
    watch: Watch,
    /// Transfers that a donor refused since the last time that was asked.
    refused: BTreeSet<TransferId>,
    tally: Tally,
}

/// What is known of one shard.
#[derive(Clone, Debug, Default)]
struct Soft {
    /// By both clocks.
    heard: Option<(Duration, i64)>,
    /// Epoch and cycle of the last report that counted.
    order: Option<(i64, i64)>,
    kept: Option<Kept>,
    instructions: Instructions,
    address_changed: Option<Duration>,
    /// Cluster digests, the shard's and ours, that differ although the shard named its
    /// clusters: asking again would change nothing.
    clusters_differ: Option<(u64, u64)>,
    /// Of the clusters that the shard named last, those that were not its own.
    claimed: Vec<ClusterId>,
    digest: Option<Digest>,
}

/// The digest of an Assignment, for as long as nothing alters it.
#[derive(Clone, Debug)]
struct Digest {
    changed_at: u64,
    provider_address: Box<str>,
    digest: u64,
}

impl Reports {
    /// Those of a leader of this coordinator term. `seed` must be random: instruction
    /// ids are drawn from it.
    #[must_use]
    pub fn new(term: i64, limits: LivenessLimits, seed: u64) -> Self {
        Self {
            term,
            since: Duration::ZERO,
            limits,
            sequence: 0,
            dice: Dice::seeded(seed),
            shards: BTreeMap::new(),
            watch: Watch::default(),
            refused: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    /// The leadership began at this time.
    #[must_use]
    pub const fn led_since(mut self, now: Now) -> Self {
        self.since = now.monotonic;
        self
    }

    /// How long the leadership has lasted.
    #[must_use]
    pub const fn led_for(&self, now: Now) -> Duration {
        now.monotonic.saturating_sub(self.since)
    }

    /// The coordinator term of all answers.
    #[must_use]
    pub const fn term(&self) -> i64 {
        self.term
    }

    /// A command was committed by this leader: shards that get no Assignment are told of
    /// domains gained and lost.
    pub fn committed(&mut self, state: &State, outcome: &Result<Effect, Refused>, now: Now) {
        match outcome {
            Ok(Effect::DomainMoved { domain, from, to }) => {
                for (shard, gained) in [(from, false), (to, true)] {
                    let told =
                        |shard: &&ShardId| state.shard(shard).is_some_and(|shard| !shard.shared);
                    if let Some(shard) = shard.as_ref().filter(told) {
                        let (seq, id) = self.draw();
                        let soft = self.shards.entry(shard.clone()).or_default();
                        soft.instructions.tell(seq, id, domain.clone(), gained, now.monotonic);
                    }
                }
            }
            Ok(Effect::Adopted { conflicts }) => {
                self.tally.adoption_conflicts += u64::from(*conflicts);
            }
            Ok(Effect::Batch(outcomes)) => {
                for outcome in outcomes {
                    self.committed(state, outcome, now);
                }
            }
            Ok(Effect::Unchanged | Effect::Changed | Effect::Confirmed(_)) | Err(_) => {}
        }
    }

    /// What came of a report's commands: a cluster that nobody had when the report was
    /// taken may be another shard's by now.
    pub fn count_conflicts(&mut self, outcome: &Result<Effect, Refused>) {
        match outcome {
            Ok(Effect::Batch(outcomes)) => {
                outcomes.iter().for_each(|outcome| self.count_conflicts(outcome));
            }
            Err(Refused::ClusterAlreadyBound { .. }) => self.tally.binding_conflicts += 1,
            Ok(_) | Err(_) => {}
        }
    }

    /// Drops what is too old, and all of shards that are gone. For every few seconds.
    pub fn expire(&mut self, state: &State, now: Now) {
        let limits = self.limits;
        self.shards.retain(|id, _| state.shard(id).is_some());
        for soft in self.shards.values_mut() {
            let age = soft.heard.map(|(at, _)| now.monotonic.saturating_sub(at));
            if limits.of(age) == Liveness::Expired {
                *soft = Soft { heard: soft.heard, ..Soft::default() };
            }
        }
    }

    /// What rebalancing looks at: shards that take part, and what is on its way.
    #[must_use]
    pub fn picture(&self, state: &State, now: Now) -> Picture {
        let takes_part = |(id, soft): (&ShardId, &Soft)| {
            let live = self.liveness(id, now) == Liveness::Live;
            let shared = state.shard(id).is_some_and(|shard| shard.shared);
            let figures = soft.kept.as_ref()?.figures.as_ref().filter(|_| live && shared)?;
            // A provider within the shard is nobody else's.
            let reachable = !figures.provider_address.is_empty();
            reachable.then(|| (id.clone(), figures.clone()))
        };
        Picture {
            shards: self.shards.iter().filter_map(takes_part).collect(),
            transfers: state.transfers().clone(),
        }
    }

    /// How many of the registered shards this leader has heard.
    #[must_use]
    pub fn heard(&self, state: &State) -> Heard {
        let heard = |id: &&ShardId| self.shards.get(*id).is_some_and(|soft| soft.heard.is_some());
        Heard {
            registered: state.shards().len(),
            reported: state.shards().keys().filter(heard).count(),
        }
    }

    /// How lately a shard was heard.
    #[must_use]
    pub fn liveness(&self, shard: &str, now: Now) -> Liveness {
        let heard = self.shards.get(shard).and_then(|soft| soft.heard);
        self.limits.of(heard.map(|(at, _)| now.monotonic.saturating_sub(at)))
    }

    /// Epoch and cycle of the last report of a shard that counted.
    #[must_use]
    pub fn last_report(&self, shard: &str) -> Option<(i64, i64)> {
        self.shards.get(shard).and_then(|soft| soft.order)
    }

    /// When a shard was heard, in unix nanoseconds; 0 if not by this leader.
    #[must_use]
    pub fn last_heartbeat(&self, shard: &str) -> i64 {
        let heard = self.shards.get(shard).and_then(|soft| soft.heard);
        heard.map_or(0, |(_, unix_nanos)| unix_nanos)
    }

    /// The last reports, by shard; of one shard, or of all for an empty name.
    #[must_use]
    pub fn snapshots(&self, shard: &str) -> Vec<ShardReportSnapshot> {
        let wanted = self.shards.iter().filter(|(id, _)| shard.is_empty() || id.as_str() == shard);
        wanted.filter_map(|(_, soft)| soft.kept.as_ref().map(Kept::snapshot)).collect()
    }

    /// Instructions that wait, by shard.
    pub fn pending(&self) -> impl Iterator<Item = (&ShardId, usize)> {
        self.shards.iter().map(|(id, soft)| (id, soft.instructions.len()))
    }

    /// How long the oldest instruction has waited.
    #[must_use]
    pub fn oldest_instruction(&self, now: Now) -> Option<Duration> {
        let oldest = self.shards.values().filter_map(|soft| soft.instructions.oldest()).min();
        oldest.map(|since| now.monotonic.saturating_sub(since))
    }

    /// Shortfalls of all shards that have waited too long.
    #[must_use]
    pub fn escalated(&self) -> Escalated {
        let mut sum = Escalated::default();
        for kept in self.shards.values().filter_map(|soft| soft.kept.as_ref()) {
            sum.same += kept.escalated.same;
            sum.other += kept.escalated.other;
        }
        sum
    }

    /// Transfers that a donor refused since the last time.
    pub fn take_refused(&mut self) -> BTreeSet<TransferId> {
        std::mem::take(&mut self.refused)
    }

    /// What was counted since the last time.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// The next sequence number and a random id.
    fn draw(&mut self) -> (i64, String) {
        self.sequence += 1;
        (self.sequence, self.dice.id())
    }
}
