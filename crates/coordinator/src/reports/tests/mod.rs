//! The steps of coordinator chapter §6, one by one, on a clock of our own.

mod delivery;
mod order;
mod shared;

use std::time::Duration;

use bigfleet_wire::v1alpha1::{self as wire, instruct_ack::Outcome};

use super::*;
use crate::state::{Command, Domain, State};

pub(super) const FLEET: &str = "u.00000005";
pub(super) const TERM: i64 = 7;

/// A leader over a state that needs no consensus.
pub(super) struct Leader {
    pub(super) state: State,
    pub(super) reports: Reports,
    pub(super) index: u64,
    pub(super) now: Now,
    pub(super) commits: Vec<Command>,
}

impl Leader {
    pub(super) fn new() -> Self {
        let mut leader = Self {
            state: State::default(),
            reports: Reports::new(TERM, LivenessLimits::default(), 1),
            index: 0,
            now: Now { monotonic: Duration::from_secs(1_000), unix_nanos: 5 },
            commits: Vec::new(),
        };
        leader.commit(&Command::InitFleet { fleet_id: FLEET.to_owned() });
        leader.commits.clear();
        leader
    }

    pub(super) fn commit(&mut self, command: &Command) {
        self.index += 1;
        let outcome = self.state.apply(self.index, command);
        self.reports.committed(&self.state, &outcome, self.now);
        self.commits.push(command.clone());
    }

    /// Another leader takes over: the soft state is gone.
    pub(super) fn elect(&mut self) {
        self.reports = Reports::new(TERM + 1, LivenessLimits::default(), 2);
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.now.monotonic += Duration::from_secs(seconds);
        self.now.unix_nanos += i64::try_from(seconds).unwrap() * 1_000_000_000;
        self.reports.expire(&self.state, self.now);
    }

    pub(super) fn report(
        &mut self,
        report: &wire::ShardReport,
    ) -> Result<wire::ReportAck, Rejected> {
        self.commits.clear();
        match self.reports.begin(&self.state, report, self.now)? {
            Begun::Answer(ack) => return Ok(*ack),
            Begun::Commit(command) => self.commit(&command),
            Begun::Known => {}
        }
        let mut taken = self.reports.take(&self.state, report.clone(), self.now)?;
        for command in batches(std::mem::take(&mut taken.commands)) {
            self.commit(&command);
        }
        Ok(self.reports.answer(&self.state, &taken, self.now))
    }

    pub(super) fn ok(&mut self, report: &wire::ShardReport) -> wire::ReportAck {
        self.report(report).unwrap()
    }
}

/// A report of a shard with a scope of its own.
pub(super) fn report(shard: &str, epoch: i64, cycle: i64) -> wire::ShardReport {
    wire::ShardReport {
        shard_id: shard.to_owned(),
        shard_address: format!("{shard}:7780"),
        shard_epoch: epoch,
        instance: u64::try_from(epoch).unwrap() * 100 + 1,
        cycle,
        fleet_id: FLEET.to_owned(),
        ..wire::ShardReport::default()
    }
}

/// A report of a shared-scope shard that has stored this Assignment.
pub(super) fn shared(
    shard: &str,
    cycle: i64,
    stored: Option<&wire::Assignment>,
) -> wire::ShardReport {
    wire::ShardReport {
        assignment_digest: stored.map_or(1, |stored| stored.digest),
        assignment_version: stored.map_or(0, |stored| stored.version),
        ..report(shard, 1, cycle)
    }
}

pub(super) fn assign(value: &str, shard: &str) -> Command {
    Command::AssignDomain { domain: Domain::new("zone", value), shard: shard.into() }
}

pub(super) fn ack(id: &str, outcome: Outcome) -> wire::InstructAck {
    wire::InstructAck {
        instruction_id: id.to_owned(),
        outcome: outcome.into(),
        ..wire::InstructAck::default()
    }
}

/// Instructions as text.
pub(super) fn told(ack: &wire::ReportAck) -> Vec<String> {
    use wire::coordinator_instruction::Payload;
    let told = |one: &wire::CoordinatorInstruction| match one.payload.as_ref().unwrap() {
        Payload::AssignDomain(domain) => format!("+{}", domain.topology_value),
        Payload::UnassignDomain(domain) => format!("-{}", domain.topology_value),
        Payload::TransferOwnership(transfer) => format!("give {}", transfer.transfer_id),
        Payload::ReassignSpeculative(transfer) => format!("slots {}", transfer.transfer_id),
        Payload::CrossShardDrain(transfer) => format!("drain {}", transfer.transfer_id),
    };
    ack.instructions.iter().map(told).collect()
}
