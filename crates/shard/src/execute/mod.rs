//! The execute pool: workers carry out what cycles decided, one action each, and
//! nothing they meet can make a cycle wait (§7).

mod bootstrap;
mod call;
mod delete;
mod limit;
mod provision;
mod queue;
mod reclaim;
mod refused;
mod resolve;

use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::MachineId;

pub(crate) use limit::Limit;
pub(crate) use queue::{Full, Job, Queue, Step};
pub(crate) use reclaim::Reclaims;
pub(crate) use refused::Refusals;

use crate::{
    live::{Desk, Stage},
    outcome::{Disposition, Kind, Outcome},
    shard::Shard,
};

/// How an action left its worker.
#[derive(Debug)]
enum Ended {
    /// It is over.
    Over(Over),
    /// The worker is free; the operator has its turn.
    Waits,
}

/// What became of an action.
#[derive(Debug)]
struct Over {
    outcome: Outcome,
    /// What went wrong.
    error: String,
    operation_id: String,
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        Self::Over(Over { outcome, error: String::new(), operation_id: String::new() })
    }
}

impl Ended {
    fn with_error(outcome: Outcome, error: impl Into<String>) -> Self {
        Self::Over(Over { outcome, error: error.into(), operation_id: String::new() })
    }

    fn success(operation_id: String) -> Self {
        Self::Over(Over { outcome: Outcome::Success, error: String::new(), operation_id })
    }
}

/// One worker, until the queue is closed.
pub(crate) async fn work(shard: Arc<Shard>) {
    while let Some(job) = shard.queue.next().await {
        shard.execute(job).await;
        shard.queue.done();
        shard.after_job();
    }
}

impl Shard {
    async fn execute(self: &Arc<Self>, job: Job) {
        let Job { machine, kind, decision, step } = job;
        let turn = match &step {
            Step::Act(Some(cluster)) => Some(bootstrap::Turn::new(&self.queue, cluster.clone())),
            _ => None,
        };
        let Some(action) = self.start(&machine, decision).await else { return };
        let ended = match (step, &action.kind) {
            (Step::Drain, _) => self.finish_drain(&machine, decision).await,
            (_, ActionKind::Provision(bought)) => self.provision(&machine, bought, decision).await,
            (_, ActionKind::Bootstrap(bound)) => {
                self.bootstrap(&machine, bound, decision, turn).await
            }
            (_, ActionKind::Reclaim { .. } | ActionKind::Preempt { .. }) => {
                self.reclaim(&action, decision).await
            }
            (_, ActionKind::Delete) => self.delete(&machine, decision).await,
        };
        match ended {
            Ended::Over(over) => self.close(&machine, kind, decision, over).await,
            Ended::Waits => self.await_operator(&machine, kind, decision),
        }
    }

    /// Takes the action of a machine from the queue.
    async fn start(&self, machine: &MachineId, decision: i64) -> Option<Action> {
        let mut desk = self.desk().await;
        let pending = desk.live.pending(machine).filter(|one| one.decision == decision)?;
        if !desk.may_begin(&pending.action) {
            desk.end(machine);
            self.record_outcome(decision, Outcome::StaleState, "no longer this shard's", "");
            return None;
        }
        let pending = desk.live.pending_mut(machine)?;
        pending.stage = Stage::Running;
        Some(pending.action.clone())
    }

    /// An action is over.
    async fn close(&self, machine: &MachineId, kind: Kind, decision: i64, over: Over) {
        {
            let mut desk = self.desk().await;
            // A provision that goes on as a bootstrap has ended in its own write.
            let current = desk.live.pending(machine).is_some_and(|one| one.decision == decision);
            if current {
                desk.end(machine);
            }
            match over.outcome {
                Outcome::Success => desk.live.backoffs.clear(machine),
                Outcome::ProviderError => {
                    let spread = self.dice.fraction();
                    desk.live.backoffs.fail(machine, kind.label(), over.error.clone(), spread);
                }
                _ => {}
            }
        }
        self.metrics.executed(kind, over.outcome);
        self.record_outcome(decision, over.outcome, &over.error, &over.operation_id);
        if !matches!(over.outcome, Outcome::Success | Outcome::StaleState) {
            let (outcome, error) = (over.outcome, over.error);
            tracing::warn!(%machine, %kind, %outcome, error, "an action came to nothing");
        }
    }
}

impl Desk<'_> {
    /// Queues the second half of a purchase; where there is no place it stays
    /// pending, and the next cycle queues it.
    pub(crate) fn enqueue_second_half(&mut self, action: Action) {
        if !self.shard.may_act() || !self.may_begin(&action) {
            return;
        }
        let machine = action.machine.clone();
        let cluster = action.kind.cluster().cloned();
        let decision = self.record(&action, self.decider.engine.cycles(), Disposition::Decided);
        self.begin(action, decision);
        let step = Step::Act(cluster);
        let job = Job { machine, kind: Kind::Bootstrap, decision, step };
        self.queue_again(job);
    }

    /// Tries once more to queue what is pending without a place.
    pub(crate) fn queue_again(&mut self, job: Job) {
        let machine = job.machine.clone();
        let stage = match self.shard.queue.push(job) {
            Ok(()) => Stage::Queued,
            Err(Full) => Stage::Unqueued,
        };
        if let Some(pending) = self.live.pending_mut(&machine) {
            pending.stage = stage;
        }
    }
}
