//! Roll-ups off the receive path: a slot for one, a worker only while it is full.

use std::{
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::available_parallelism,
};

use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use tokio::sync::Semaphore;
use tonic::Status;

use super::{
    ack::Acks,
    host::{Host, RollUpAnswer},
    link::Session,
};

/// From so many needs on, a roll-up gets a thread of its own: checking it would
/// hold up other sessions.
const LARGE: usize = 512;

/// Large roll-ups that are worked on at once. After a restart all clusters report
/// together, and the cycle's thread must get its share of the processors.
pub(super) fn threads() -> Arc<Semaphore> {
    let processors = available_parallelism().map_or(1, NonZero::get);
    Arc::new(Semaphore::new(processors.div_ceil(2)))
}

/// The newest roll-up that waits, and whether a worker is about.
#[derive(Default)]
pub(super) struct Slot(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: Option<Box<ClusterCapacityNeeds>>,
    worker: bool,
}

impl Slot {
    /// Puts a roll-up in, over one that waits; true if it needs a worker.
    fn offer(&self, roll_up: ClusterCapacityNeeds) -> bool {
        let roll_up = Some(Box::new(roll_up));
        let mut state = self.lock();
        let replaced = std::mem::replace(&mut state.waiting, roll_up);
        let idle = !std::mem::replace(&mut state.worker, true);
        drop(state);
        drop(replaced);
        idle
    }

    /// Takes the roll-up out; with none, the worker is gone.
    fn take(&self) -> Option<Box<ClusterCapacityNeeds>> {
        let mut state = self.lock();
        let taken = state.waiting.take();
        state.worker = taken.is_some();
        taken
    }

    /// Nobody will apply the one that waits.
    pub(super) fn clear(&self) {
        let waiting = self.lock().waiting.take();
        drop(waiting);
    }

    /// Whether the one that waits is large.
    fn is_large(&self) -> bool {
        self.lock().waiting.as_ref().is_some_and(|roll_up| roll_up.needs.len() >= LARGE)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a roll-up into the session's slot and sees that it is worked off.
pub(super) fn submit<H: Host>(
    host: &Arc<H>,
    threads: &Arc<Semaphore>,
    session: &Arc<Session>,
    roll_up: ClusterCapacityNeeds,
) {
    if session.roll_ups.offer(roll_up) {
        tokio::spawn(work(host.clone(), threads.clone(), session.clone()));
    }
}

async fn work<H: Host>(host: Arc<H>, threads: Arc<Semaphore>, session: Arc<Session>) {
    let _guard = EndIfPanicking(&session);
    loop {
        // Still in the slot while it waits for its turn, a newer one replaces it.
        let turn = match session.roll_ups.is_large() {
            true => threads.acquire().await.ok(),
            false => None,
        };
        let Some(roll_up) = session.roll_ups.take() else {
            return;
        };
        // Dropped here already, a replaced session's is not even checked.
        if !session.is_current() {
            continue;
        }
        let timestamp = roll_up.timestamp_unix_nanos;
        let Some(answer) = hand_over(&host, &session, roll_up).await else {
            return failed(&session);
        };
        drop(turn);
        let acks = Acks::of(&*host);
        let ack = match answer {
            RollUpAnswer::Accepted => acks.roll_up(timestamp, false),
            RollUpAnswer::Held => acks.roll_up(timestamp, true),
            RollUpAnswer::Rejected(error) => acks.rejected(timestamp, error),
            RollUpAnswer::Dropped => continue,
        };
        session.control(ack);
    }
}

/// None if the thread that worked on it died.
async fn hand_over<H: Host>(
    host: &Arc<H>,
    session: &Arc<Session>,
    roll_up: Box<ClusterCapacityNeeds>,
) -> Option<RollUpAnswer> {
    let large = roll_up.needs.len() >= LARGE;
    let apply = {
        let (host, session) = (host.clone(), session.clone());
        move || host.roll_up(session.cluster(), *roll_up, &|| session.is_current())
    };
    if large { tokio::task::spawn_blocking(apply).await.ok() } else { Some(apply()) }
}

/// A worker that died would leave the session deaf: better that the operator
/// connects anew.
fn failed(session: &Session) {
    session.end(Some(Status::internal("the roll-up could not be worked on; connect again")));
}

struct EndIfPanicking<'a>(&'a Session);

impl Drop for EndIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            failed(self.0);
        }
    }
}
