//! Steps 1 and 2: whether the report is of this fleet, and whether its process is known.

use std::time::Duration;

use bigfleet_model::FleetId;
use bigfleet_wire::v1alpha1 as wire;

use super::{Now, Reports};
use crate::state::{Command, Shard, ShardId, State};

/// An address alone changes at most so often.
const ADDRESS_PAUSE: Duration = Duration::from_secs(60);

/// Where a report stands before it is taken.
#[derive(Debug)]
pub enum Begun {
    /// It is of an older generation: the shard learns of this one, and no more.
    Answer(Box<wire::ReportAck>),
    /// This must be committed first; then it can be taken.
    Commit(Box<Command>),
    /// It can be taken.
    Known,
}

/// A report that counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Its fleet has been restored from this one's past.
    #[error("superseded: the shard follows {theirs}, this is {ours}")]
    Superseded {
        /// The shard's.
        theirs: String,
        /// This one.
        ours: String,
    },
    /// It belongs elsewhere.
    #[error("foreign fleet: the shard belongs to {theirs}, this is {ours}")]
    ForeignFleet {
        /// The shard's.
        theirs: String,
        /// This one.
        ours: String,
    },
    /// The shard remembers what this fleet does not.
    #[error("history lost: run snapshot restore; the shard knows {what} {theirs}, this is {ours}")]
    HistoryLost {
        /// What was rolled back.
        what: &'static str,
        /// The shard's.
        theirs: i64,
        /// This one's.
        ours: i64,
    },
    /// Another process speaks for the shard.
    #[error("stale shard epoch: epoch {epoch} of {shard}, whose newest process has {known}")]
    StaleEpoch {
        /// The shard.
        shard: String,
        /// The report's.
        epoch: i64,
        /// The newest.
        known: i64,
    },
}

impl Reports {
    /// Looks at a report that is within its limits and whose sender may send it.
    pub fn begin(
        &mut self,
        state: &State,
        report: &wire::ShardReport,
        now: Now,
    ) -> Result<Begun, Rejected> {
        let ours = state.fleet_id().unwrap_or_default();
        if self.is_older(ours, state, report).inspect_err(|_| self.tally.foreign_fleet += 1)? {
            let ack = wire::ReportAck {
                coordinator_term: self.term,
                fleet_id: ours.to_owned(),
                ..wire::ReportAck::default()
            };
            return Ok(Begun::Answer(Box::new(ack)));
        }
        let id = ShardId::from(report.shard_id.as_str());
        let shared = report.assignment_digest != 0;
        let Some(known) = state.shard(&id) else {
            // What is known of a shard that was removed is not known of this one.
            self.shards.remove(&id);
            return Ok(Begun::Commit(Box::new(Command::AddShard {
                id,
                address: report.shard_address.clone(),
                registered_at: now.unix_nanos,
                epoch: report.shard_epoch,
                instance: report.instance,
                shared,
            })));
        };
        self.in_order(known, report)?;
        let newer = report.shard_epoch > known.epoch;
        let moved = !report.shard_address.is_empty() && report.shard_address != known.address;
        let turned = shared && !known.shared;
        if newer || turned || (moved && self.may_move(&id, now)) {
            // Without an epoch of its own, a report says nothing about the process; without an
            // instance, nothing that is not known of it.
            let same = report.shard_epoch == known.epoch && report.instance == 0;
            let (epoch, instance) = match report.shard_epoch >= known.epoch && !same {
                true => (report.shard_epoch, report.instance),
                false => (known.epoch, known.instance),
            };
            let address = if moved { &report.shard_address } else { &known.address }.clone();
            let update = Command::UpdateShard { id, address, epoch, instance, shared };
            return Ok(Begun::Commit(Box::new(update)));
        }
        Ok(Begun::Known)
    }

    /// Step 1. True for an older generation of this fleet.
    fn is_older(
        &self,
        ours: &str,
        state: &State,
        report: &wire::ShardReport,
    ) -> Result<bool, Rejected> {
        let theirs = report.fleet_id.as_str();
        if theirs.is_empty() {
            return Ok(false);
        }
        if theirs == ours {
            let index = super::wire::number(state.applied_index());
            for (what, theirs, ours) in [
                ("term", report.observed_term, self.term),
                ("assignment version", report.assignment_version, index),
            ] {
                if theirs > ours {
                    return Err(Rejected::HistoryLost { what, theirs, ours });
                }
            }
            return Ok(false);
        }
        let both = || (theirs.to_owned(), ours.to_owned());
        if let (Ok(mine), Ok(other)) = (ours.parse::<FleetId>(), theirs.parse::<FleetId>())
            && mine.uuid() == other.uuid()
        {
            if other.generation() < mine.generation() {
                return Ok(true);
            }
            let (theirs, ours) = both();
            return Err(Rejected::Superseded { theirs, ours });
        }
        let (theirs, ours) = both();
        Err(Rejected::ForeignFleet { theirs, ours })
    }

    /// The first half of step 3: two processes, one id.
    pub(super) fn in_order(
        &mut self,
        known: &Shard,
        report: &wire::ShardReport,
    ) -> Result<(), Rejected> {
        let epoch = report.shard_epoch;
        // Unspecified.
        if epoch == 0 {
            return Ok(());
        }
        let another =
            report.instance != 0 && known.instance != 0 && report.instance != known.instance;
        if epoch < known.epoch || (epoch == known.epoch && another) {
            self.tally.stale_epoch += 1;
            let (shard, known) = (report.shard_id.clone(), known.epoch);
            return Err(Rejected::StaleEpoch { shard, epoch, known });
        }
        Ok(())
    }

    fn may_move(&mut self, shard: &ShardId, now: Now) -> bool {
        let soft = self.shards.entry(shard.clone()).or_default();
        let last = soft.address_changed;
        if last.is_some_and(|at| now.monotonic.saturating_sub(at) < ADDRESS_PAUSE) {
            return false;
        }
        soft.address_changed = Some(now.monotonic);
        true
    }
}
