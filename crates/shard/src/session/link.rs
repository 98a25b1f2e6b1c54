//! One session: a cluster's operator on one stream.

use std::{
    collections::HashMap,
    mem,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bigfleet_model::ClusterId;
use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::{oneshot, watch};
use tonic::Status;

use super::{
    blob::{self, Answer},
    features::Features,
    instruction::Progress,
    outbox::{Outbox, Refused},
    rollups::Slot,
};

/// What the first frame said, and who said it.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) cluster: ClusterId,
    pub(super) peer: SocketAddr,
    pub(super) since_unix_nanos: i64,
    pub(super) protocol_version: String,
    pub(super) feature_names: Vec<String>,
    pub(super) features: Features,
}

/// An operator that said Hello.
pub(super) struct Session {
    pub(super) opening: Opening,
    outbox: Arc<Outbox>,
    waits: Mutex<Waits>,
    pub(super) roll_ups: Slot,
    /// It is its cluster's session. Never true again once false.
    current: AtomicBool,
    /// The replay and its marker are in the outbox.
    resynced: AtomicBool,
}

/// Who waits for this operator.
#[derive(Default)]
struct Waits {
    blobs: HashMap<String, oneshot::Sender<Answer>>,
    /// Instructions without an ack so far.
    instructions: HashMap<String, watch::Sender<Progress>>,
    over: bool,
}

impl Session {
    pub(super) fn new(opening: Opening, outbox: Arc<Outbox>) -> Arc<Self> {
        Arc::new(Self {
            opening,
            outbox,
            waits: Mutex::default(),
            roll_ups: Slot::default(),
            current: AtomicBool::new(true),
            resynced: AtomicBool::new(false),
        })
    }

    pub(super) fn cluster(&self) -> &ClusterId {
        &self.opening.cluster
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Queues an ack. An operator that leaves so many unread is not there.
    pub(super) fn control(&self, ack: wire::ShardMessage) {
        if self.outbox.push_control(ack) == Err(Refused::Full) {
            let status = "too many frames wait unread; read the stream and connect again";
            self.end(Some(Status::resource_exhausted(status)));
        }
    }

    /// Whether this is still its cluster's session.
    pub(super) fn is_current(&self) -> bool {
        self.current.load(Ordering::Acquire)
    }

    /// The marker is queued: whatever follows is news.
    pub(super) fn set_resynced(&self) {
        self.resynced.store(true, Ordering::Release);
    }

    /// Whether the marker is queued.
    pub(super) fn is_resynced(&self) -> bool {
        self.resynced.load(Ordering::Acquire)
    }

    /// Ends it: the stream with this status, everybody who waits at once.
    pub(super) fn end(&self, status: Option<Status>) {
        // First of all: what a newer session says must not be overwritten.
        self.current.store(false, Ordering::Release);
        self.roll_ups.clear();
        self.outbox.close(status);
        let mut waits = self.lock();
        waits.over = true;
        let blobs = mem::take(&mut waits.blobs);
        let instructions = mem::take(&mut waits.instructions);
        drop(waits);
        drop(blobs);
        for progress in instructions.into_values() {
            progress.send_modify(|progress| progress.session_ended = true);
        }
    }

    /// A blob request of this id is about to be queued; none if it is too late.
    pub(super) fn await_blob(&self, id: &str) -> Option<oneshot::Receiver<Answer>> {
        let mut waits = self.lock();
        if waits.over {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        waits.blobs.insert(id.to_owned(), sender);
        Some(answer)
    }

    /// An instruction is about to be queued; false if it is too late.
    pub(super) fn await_ack(&self, id: &str, progress: watch::Sender<Progress>) -> bool {
        let mut waits = self.lock();
        if !waits.over {
            waits.instructions.insert(id.to_owned(), progress);
        }
        !waits.over
    }

    /// Hands a blob to whoever asked for it here; nobody else may answer.
    pub(super) fn answer_blob(&self, response: wire::BootstrapBlobResponse) {
        let waiting = self.lock().blobs.remove(&response.request_id);
        let answer = blob::answer(response);
        if let Some(waiting) = waiting {
            // One who has stopped waiting drops it.
            let _ = waiting.send(answer);
        }
    }

    /// An ack of this instruction has come: the end of the session will not be told.
    pub(super) fn acked(&self, id: &str) {
        self.lock().instructions.remove(id);
    }

    /// Nobody waits for this answer any more.
    pub(super) fn forget(&self, id: &str) {
        let mut waits = self.lock();
        waits.blobs.remove(id);
        waits.instructions.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
