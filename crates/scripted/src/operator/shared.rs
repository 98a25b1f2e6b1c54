//! What the handle, the reader and the timed answers of one operator share.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use bigfleet_wire::v1alpha1::{
    OperatorMessage, ReclaimAck, ReclaimInstruction, operator_message::Payload,
};
use tokio::sync::{mpsc::UnboundedSender, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::Status;

use super::{options::OperatorOptions, policy::Policies, session::message, state::State};

pub(super) struct Shared {
    pub(super) options: OperatorOptions,
    pub(super) state: watch::Sender<State>,
    pub(super) stalled: watch::Sender<bool>,
    policies: Mutex<Policies>,
    /// The one strong sender of the present session: dropping it half-closes.
    outbox: Mutex<Option<UnboundedSender<OperatorMessage>>>,
    numbers: AtomicU64,
    clock: Mutex<i64>,
    timed: TaskTracker,
    /// Ends timed answers with the operator.
    gone: CancellationToken,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Nothing here is left half-done by a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(options: OperatorOptions) -> Self {
        Self {
            options,
            state: watch::Sender::new(State::default()),
            stalled: watch::Sender::new(false),
            policies: Mutex::default(),
            outbox: Mutex::default(),
            numbers: AtomicU64::new(0),
            clock: Mutex::default(),
            timed: TaskTracker::new(),
            gone: CancellationToken::new(),
        }
    }

    pub(super) fn policies(&self) -> Policies {
        locked(&self.policies).clone()
    }

    pub(super) fn set_policies(&self, change: impl FnOnce(&mut Policies)) {
        change(&mut locked(&self.policies));
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Now, but later than every timestamp before it: the shard names roll-ups
    /// by it.
    pub(super) fn next_timestamp(&self) -> i64 {
        let mut last = locked(&self.clock);
        *last = unix_nanos().max(*last + 1);
        *last
    }

    pub(super) fn set_outbox(&self, outbox: Option<UnboundedSender<OperatorMessage>>) {
        *locked(&self.outbox) = outbox;
    }

    pub(super) fn send(&self, message: OperatorMessage) -> bool {
        locked(&self.outbox).as_ref().is_some_and(|outbox| outbox.send(message).is_ok())
    }

    /// Changes the state for this session, unless another has begun.
    pub(super) fn update(&self, session: u64, change: impl FnOnce(&mut State)) {
        self.state.send_if_modified(|state| {
            let current = state.session == session;
            if current {
                change(state);
            }
            current
        });
    }

    pub(super) fn end(&self, session: u64, status: Status) {
        tracing::debug!(cluster = self.options.cluster, session, %status, "session ended");
        self.update(session, |state| {
            state.ended = Some(status);
            self.set_outbox(None);
        });
    }

    pub(super) fn acknowledge(&self, ack: ReclaimAck) {
        self.send(message(Payload::ReclaimAck(ack)));
    }

    pub(super) fn cordon(&self, instruction: &ReclaimInstruction) {
        let mut ack = None;
        self.state.send_modify(|state| ack = Some(state.cordon(instruction)));
        if let Some(ack) = ack {
            self.acknowledge(ack);
        }
    }

    /// Whether there was a drain to end.
    pub(super) fn finish(&self, instruction: &str, in_time: bool) -> bool {
        let mut ack = None;
        self.state.send_modify(|state| ack = state.finish(instruction, in_time));
        let Some(ack) = ack else { return false };
        self.acknowledge(ack);
        true
    }

    /// Runs beside the sessions, to its end or the operator's.
    pub(super) fn later(&self, script: impl Future<Output = ()> + Send + 'static) {
        let gone = self.gone.clone();
        self.timed.spawn(async move { gone.run_until_cancelled(script).await });
    }

    pub(super) fn retire(&self) {
        self.gone.cancel();
    }
}

pub(crate) fn unix_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
