//! A mutation that failed may still have happened: ask the provider (§7).

use std::time::Duration;

use bigfleet_engine::Tracked;
use bigfleet_model::{MachineId, MachineState};
use bigfleet_provider::{Ack, Error};
use tokio::time::{Instant, timeout_at};

use super::{Ended, call::Failed};
use crate::{
    live::{Cause, Hold},
    outcome::Outcome,
    shard::Shard,
};

/// How long the provider is asked what became of a machine.
const ASK: Duration = Duration::from_secs(5);

impl Shard {
    /// Takes in the record of an accepted call; its state, or why it was refused.
    pub(super) async fn apply_ack(
        &self,
        machine: &MachineId,
        ack: &Ack,
        decision: i64,
    ) -> Result<MachineState, String> {
        let record = ack.machine.clone().map_err(|refused| {
            self.metrics.machine_rejected(refused.why.reason);
            refused.to_string()
        })?;
        if record.id != *machine {
            return Err(format!("the ack is about machine {}", record.id));
        }
        let state = record.state;
        let mut desk = self.desk().await;
        // Created at once: the first half ends in the write that begins the second.
        let created = desk.state(machine) == Some(MachineState::Creating);
        if created && state == MachineState::Idle {
            desk.end(machine);
        }
        desk.follow_provider(machine, record, Cause::Ack, decision);
        Ok(state)
    }

    /// What a call came to: its record is taken in, or what went wrong is settled.
    pub(super) async fn conclude(
        &self,
        machine: &MachineId,
        start: MachineState,
        answer: Result<Ack, Failed>,
        decision: i64,
    ) -> Ended {
        let ack = match answer {
            Ok(ack) => ack,
            Err(failed) => return self.settle(machine, start, failed, decision).await,
        };
        match self.apply_ack(machine, &ack, decision).await {
            Ok(_) => Ended::success(ack.operation_id),
            Err(error) => self.settle_rejected(machine, error, decision).await,
        }
    }

    /// What is left to do when a call failed: undo what was never sent, ask about
    /// what was. `start` is where the provider had the machine before.
    pub(super) async fn settle(
        &self,
        machine: &MachineId,
        start: MachineState,
        failed: Failed,
        decision: i64,
    ) -> Ended {
        match failed.sent {
            None => self.roll_back(machine, start, decision).await,
            Some(sent) => {
                let until = sent + self.options.unanswered();
                let hold = failed.unanswered.then_some(Hold { start, until });
                self.resolve(machine, hold, decision).await;
            }
        }
        Ended::with_error(failed.outcome, failed.error)
    }

    /// The ack was no good: the provider did accept, so ask what it has.
    pub(super) async fn settle_rejected(
        &self,
        machine: &MachineId,
        error: String,
        decision: i64,
    ) -> Ended {
        self.resolve(machine, None, decision).await;
        Ended::with_error(Outcome::AckRejected, error)
    }

    /// Adopts what the provider says of a machine. No answer leaves it between two
    /// states, and the next List settles it.
    async fn resolve(&self, machine: &MachineId, hold: Option<Hold>, decision: i64) {
        let begun = {
            let mut live = self.live();
            if let Some(hold) = hold {
                live.holds.insert(machine.clone(), hold);
            }
            live.touches.begin()
        };
        let deadline = Instant::now() + ASK;
        let answer = timeout_at(deadline, self.supply.get(machine, deadline)).await;
        let mut desk = self.desk().await;
        match answer {
            Ok(Ok(record)) if hold.is_some_and(|hold| hold.doubts(record.state, begun)) => {}
            Ok(Ok(record)) if record.id == *machine => {
                desk.follow_provider(machine, record, Cause::Ack, decision);
            }
            Ok(Err(Error::NotFound(_))) => desk.remove(machine, Cause::Ack),
            Ok(Ok(_) | Err(_)) | Err(_) => {}
        }
        desk.live.touches.end(begun);
    }

    /// Back to where a machine was: the provider never heard of it.
    pub(super) async fn roll_back(&self, machine: &MachineId, to: MachineState, decision: i64) {
        let now = self.clock.now();
        let mut desk = self.desk().await;
        desk.write(machine, Cause::Rollback, decision, |tracked: &mut Tracked| {
            let idle = to == MachineState::Idle;
            tracked.machine.state = to;
            tracked.drain = None;
            tracked.idle_since = idle.then_some(now);
            if matches!(to, MachineState::Idle | MachineState::Speculative) {
                tracked.machine.cluster = None;
                tracked.machine.stamp = None;
            }
        });
    }
}
