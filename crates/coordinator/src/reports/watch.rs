//! How long things have been on their way, by this leader's clock: a new leader counts
//! from its election.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bigfleet_wire::v1alpha1 as wire;

use super::{Now, Reports, pending::selector, wire::home};
use crate::state::{Command, Key, Row, State, Transfer, TransferId, TransferKind, TransferPhase};

/// A donor is asked for so long.
const RELEASING_FOR: Duration = Duration::from_secs(2 * 60);
/// A drain takes its time.
const DRAINING_FOR: Duration = Duration::from_secs(30 * 60);
/// A recipient is done with its machines.
const SETTLING_FOR: Duration = Duration::from_secs(40 * 60);

/// Times of the log that are kept; with more, every second one is dropped.
const MOST_TIMES: usize = 4_096;

/// What was seen, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// When a transfer was first seen in its phase.
    transfers: BTreeMap<(TransferId, TransferPhase), Duration>,
    /// Indexes of the log, and when they were found applied.
    log: VecDeque<(u64, Duration)>,
}

/// How long a phase normally takes.
fn normal(transfer: &Transfer) -> Duration {
    match (transfer.phase, transfer.kind) {
        (TransferPhase::Moved, _) => SETTLING_FOR,
        (TransferPhase::Releasing, TransferKind::Drain) => DRAINING_FOR,
        (TransferPhase::Releasing, _) => RELEASING_FOR,
    }
}

impl Watch {
    fn look(&mut self, state: &State, now: Now) {
        let known = |id: &TransferId| state.transfers().get(id).map(|transfer| transfer.phase);
        self.transfers.retain(|(id, phase), _| known(id) == Some(*phase));
        for (id, transfer) in state.transfers() {
            let key = (id.clone(), transfer.phase);
            self.transfers.entry(key).or_insert(now.monotonic);
        }
        let index = state.applied_index();
        if self.log.back().is_none_or(|(last, _)| *last < index) {
            self.log.push_back((index, now.monotonic));
        }
        // Only what is younger than the oldest mark is asked for.
        let oldest = state.oldest_releasing().unwrap_or(index);
        while self.log.len() > 1 && self.log[0].0 < oldest {
            self.log.pop_front();
        }
        if self.log.len() > MOST_TIMES {
            let mut kept = false;
            self.log.retain(|_| {
                kept = !kept;
                kept
            });
        }
    }

    /// How long a transfer has been in its phase.
    fn age(&self, id: &TransferId, transfer: &Transfer, now: Now) -> Duration {
        let since = self.transfers.get(&(id.clone(), transfer.phase));
        since.map_or(Duration::ZERO, |since| now.monotonic.saturating_sub(*since))
    }

    /// How long ago this index was applied.
    fn age_of(&self, index: u64, now: Now) -> Duration {
        let at = self.log.partition_point(|(known, _)| *known < index);
        let seen = self.log.get(at);
        seen.map_or(Duration::ZERO, |(_, at)| now.monotonic.saturating_sub(*at))
    }
}

impl Reports {
    /// Looks at what is on its way, for every second; transfers whose donor was asked for
    /// long enough are to be ended. Always safe: a later ack finds nothing.
    pub fn give_up(&mut self, state: &State, now: Now) -> Vec<Command> {
        self.watch.look(state, now);
        // Once it has moved, only its recipient can end it.
        let waits =
            |(_, transfer): &(&TransferId, &Transfer)| transfer.phase == TransferPhase::Releasing;
        let transfers = state.transfers().iter().filter(waits);
        let late =
            transfers.filter(|(id, transfer)| self.watch.age(id, transfer, now) > normal(transfer));
        late.map(|(id, _)| Command::EndTransfer { id: id.clone() }).collect()
    }

    /// How long the most overdue transfer is past its normal time.
    #[must_use]
    pub fn overdue_transfer(&self, state: &State, now: Now) -> Option<Duration> {
        let overdue = |(id, transfer): (&TransferId, &Transfer)| {
            self.watch.age(id, transfer, now).saturating_sub(normal(transfer))
        };
        state.transfers().iter().map(overdue).max()
    }

    /// How long the oldest cluster or domain waits for a shard to let go of it.
    #[must_use]
    pub fn oldest_releasing(&self, state: &State, now: Now) -> Option<Duration> {
        state.oldest_releasing().map(|since| self.watch.age_of(since, now))
    }

    /// All that is on its way between shards.
    #[must_use]
    pub fn on_the_way(&self, state: &State, now: Now) -> wire::ListTransfersResponse {
        let transfer = |(id, transfer): (&TransferId, &Transfer)| {
            let age = self.watch.age(id, transfer, now);
            wire::TransferEntry {
                transfer_id: id.to_string(),
                kind: transfer.kind.name().to_owned(),
                phase: transfer.phase.name().to_owned(),
                from_shard_id: transfer.from.to_string(),
                to_shard_id: transfer.to.to_string(),
                selector: Some(selector(&transfer.request)),
                home: transfer.home.as_ref().map(|domain| {
                    let owner = state.row(&Key::Domain(domain.clone()));
                    let owner = owner.and_then(|row| row.owner.as_ref());
                    home(domain, owner.map_or("", |owner| owner.as_str()))
                }),
                machine_ids: transfer.machine_ids.iter().map(ToString::to_string).collect(),
                age_ms: millis(age),
                overdue_ms: millis(age.saturating_sub(normal(transfer))),
            }
        };
        let releasing = |(key, row): (&Key, &Row)| {
            let mark = row.releasing.as_ref()?;
            let entry = wire::ReleasingEntry {
                from_shard_id: mark.from.to_string(),
                to_shard_id: row.owner.as_ref().map(ToString::to_string).unwrap_or_default(),
                age_ms: millis(self.watch.age_of(mark.since, now)),
                ..wire::ReleasingEntry::default()
            };
            Some(match key {
                Key::Cluster(cluster) => {
                    wire::ReleasingEntry { cluster_id: cluster.to_string(), ..entry }
                }
                Key::Domain(domain) => wire::ReleasingEntry {
                    topology_key: domain.key.to_string(),
                    topology_value: domain.value.to_string(),
                    ..entry
                },
            })
        };
        wire::ListTransfersResponse {
            transfers: state.transfers().iter().map(transfer).collect(),
            releasing: state.releasing().filter_map(releasing).collect(),
        }
    }
}

fn millis(age: Duration) -> i64 {
    i64::try_from(age.as_millis()).unwrap_or(i64::MAX)
}
