//! Drains in two steps: the operator's part, then the provider's (§8).

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_engine::{Action, ActionKind, Drain, NeedKey};
use bigfleet_model::{ClusterId, MachineId, MachineState};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Ended, call::Mutation};
use crate::{
    live::{Cause, Stage},
    outcome::{Kind, Outcome},
    session::Instruction,
    shard::Shard,
};

/// How long the operator may take to write and to acknowledge an instruction.
const FIRST_ACK: Duration = Duration::from_secs(10);
/// How long after its deadline an operator's last word is waited for.
const SLACK: Duration = Duration::from_secs(5);

/// Machines whose operator drains them.
#[derive(Default)]
pub(crate) struct Reclaims {
    waits: Mutex<HashMap<MachineId, Wait, RandomState>>,
}

/// A drain that an operator was told of.
struct Wait {
    instruction: Instruction,
    grace: Duration,
    deadline: Instant,
    /// It promised to say when it is done.
    final_ack: bool,
    over: CancellationToken,
}

impl Wait {
    /// Whether an operator drains, so that the provider's grace is what is left.
    fn is_drained(&self) -> bool {
        let progress = *self.instruction.progress.borrow();
        self.final_ack && (progress.first_ack.is_some() || progress.finished)
    }

    fn grace_left(&self) -> Duration {
        if !self.is_drained() {
            return self.grace;
        }
        Duration::from_secs(self.deadline.saturating_duration_since(Instant::now()).as_secs())
    }
}

impl Reclaims {
    fn lock(&self) -> MutexGuard<'_, HashMap<MachineId, Wait, RandomState>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody waits any more.
    pub(crate) fn cancel(&self, machine: &MachineId) {
        if let Some(wait) = self.lock().remove(machine) {
            wait.over.cancel();
        }
    }
}

/// Whom a machine is taken from, and for whom.
struct Order<'a> {
    cluster: &'a ClusterId,
    grace: Duration,
    preemptor: Option<(i32, &'a NeedKey)>,
}

impl<'a> Order<'a> {
    fn of(action: &'a Action) -> Option<Self> {
        match &action.kind {
            ActionKind::Reclaim { cluster, grace } => {
                Some(Self { cluster, grace: *grace, preemptor: None })
            }
            ActionKind::Preempt { cluster, grace, preemptor_priority, preemptor, .. } => {
                let preemptor = Some((*preemptor_priority, preemptor));
                Some(Self { cluster, grace: *grace, preemptor })
            }
            _ => None,
        }
    }
}

/// What an operator made of an instruction at first.
enum First {
    /// Cordoned, or it may be: nothing was heard.
    Begun(Instant),
    /// It never got it, or its session ended before it said a word.
    Lost,
}

impl Shard {
    /// Tells the operator; the provider is called when it is done.
    pub(super) async fn reclaim(&self, action: &Action, decision: i64) -> Ended {
        let Some(order) = Order::of(action) else { return Outcome::Other.into() };
        let machine = &action.machine;
        if self.desk().await.state(machine) != Some(MachineState::Configured) {
            return Outcome::Success.into();
        }
        if let Err(failed) = self.check_may_act() {
            return Ended::with_error(failed.outcome, failed.error);
        }
        let priority = order.preemptor.map_or(0, |(priority, _)| priority);
        let instruction = self.sessions.instruct(order.cluster, machine, order.grace, priority);
        let Ok(mut instruction) = instruction else {
            return self.without_operator(machine, &order, decision).await;
        };
        match self.first_ack(&mut instruction).await {
            First::Begun(sent) => {
                self.begin_wait(machine, &order, instruction, sent, decision).await
            }
            First::Lost => {
                {
                    let mut desk = self.desk().await;
                    desk.live.ended.insert(machine.clone(), instruction.id.clone());
                    desk.tell_again(machine);
                }
                self.without_operator(machine, &order, decision).await
            }
        }
    }

    /// There is no operator: what is voluntary waits for one, what is not goes on.
    async fn without_operator(
        &self,
        machine: &MachineId,
        order: &Order<'_>,
        decision: i64,
    ) -> Ended {
        if order.preemptor.is_none() {
            let error = "no operator is connected, and a release must respect its budgets";
            return Ended::with_error(Outcome::NoSession, error);
        }
        tracing::warn!(%machine, cluster = %order.cluster, "preempted without its operator");
        let sent = Instant::now();
        self.to_draining(machine, order, sent, decision).await;
        self.drain(machine, order.grace, decision).await
    }

    async fn first_ack(&self, instruction: &mut Instruction) -> First {
        let progress = &mut instruction.progress;
        let written = progress.wait_for(|now| now.sent.is_some() || now.session_ended);
        if timeout(FIRST_ACK, written).await.is_err() && instruction.take_back() {
            return First::Lost;
        }
        let Some(sent) = instruction.progress.borrow().sent else { return First::Lost };
        let heard = instruction
            .progress
            .wait_for(|now| now.first_ack.is_some() || now.finished || now.session_ended);
        let heard = timeout_at(sent + FIRST_ACK, heard).await.map(|now| now.map(|now| *now));
        match heard {
            Ok(Ok(now)) if now.session_ended && now.first_ack.is_none() && !now.finished => {
                First::Lost
            }
            Ok(_) => First::Begun(sent),
            Err(_) => {
                self.metrics.reclaim_ack_timeouts.inc();
                First::Begun(sent)
            }
        }
    }

    /// Configured → Draining: counted from when the instruction was sent.
    async fn to_draining(
        &self,
        machine: &MachineId,
        order: &Order<'_>,
        sent: Instant,
        decision: i64,
    ) {
        let deadline = self.clock.time_of(sent + order.grace);
        let mut desk = self.desk().await;
        desk.write(machine, Cause::Decision, decision, |tracked| {
            tracked.machine.state = MachineState::Draining;
            tracked.drain = Some(Drain {
                deadline: Some(deadline),
                preemptor_priority: order.preemptor.map(|(priority, _)| priority),
                preemptor: order.preemptor.map(|(_, need)| need.clone()),
            });
        });
    }

    async fn begin_wait(
        &self,
        machine: &MachineId,
        order: &Order<'_>,
        instruction: Instruction,
        sent: Instant,
        decision: i64,
    ) -> Ended {
        self.to_draining(machine, order, sent, decision).await;
        let final_ack = instruction.features.final_reclaim_ack;
        let wait = Wait {
            instruction,
            grace: order.grace,
            deadline: sent + order.grace,
            final_ack,
            over: CancellationToken::new(),
        };
        self.reclaims.lock().insert(machine.clone(), wait);
        let mut desk = self.desk().await;
        if let Some(pending) = desk.live.pending_mut(machine) {
            pending.stage = Stage::ReclaimWait;
        }
        drop(desk);
        self.record_outcome(decision, Outcome::ReclaimWait, "", "");
        Ended::Waits
    }

    /// The worker is free; somebody else waits for the operator's last word.
    pub(super) fn await_operator(self: &Arc<Self>, machine: &MachineId, kind: Kind, decision: i64) {
        let waits = self.reclaims.lock();
        let Some(wait) = waits.get(machine) else { return };
        let (mut progress, over) = (wait.instruction.progress.clone(), wait.over.clone());
        let (deadline, final_ack) = (wait.deadline, wait.final_ack);
        drop(waits);
        let (shard, machine) = (self.clone(), machine.clone());
        tokio::spawn(async move {
            let done = async {
                if final_ack {
                    let done = progress.wait_for(|now| now.finished || now.first_ack == Some(0));
                    // Its sender lives as long as the instruction, which is ours.
                    drop(timeout_at(deadline + SLACK, done).await);
                }
                shard.until_acting().await;
            };
            tokio::select! {
                () = over.cancelled() => {}
                () = done => shard.queue.push_drain(machine, kind, decision),
            }
        });
    }

    /// The operator has done its part, or its time is over.
    pub(super) async fn finish_drain(&self, machine: &MachineId, decision: i64) -> Ended {
        let Some(wait) = self.reclaims.lock().remove(machine) else {
            return Outcome::StaleState.into();
        };
        let ended = self.drain(machine, wait.grace_left(), decision).await;
        let mut desk = self.desk().await;
        desk.live.ended.insert(machine.clone(), wait.instruction.id.clone());
        if desk.state(machine) == Some(MachineState::Configured) {
            desk.tell_again(machine);
        }
        drop(desk);
        ended
    }

    async fn drain(&self, machine: &MachineId, grace: Duration, decision: i64) -> Ended {
        let answer = self.mutate(machine, Mutation::Drain(grace)).await;
        self.conclude(machine, MachineState::Configured, answer, decision).await
    }
}
