//! Reclaim instructions under way (shard chapter §8).
//!
//! An instruction outlives its session: the operator drains on its own clock and
//! may finish on a later stream.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bigfleet_model::ClusterId;
use bigfleet_wire::v1alpha1 as wire;
use tokio::{sync::watch, time::Instant};

use super::{features::Features, link::Session};

/// How far an instruction has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// When it was written to the stream; its grace counts from here.
    pub(crate) sent: Option<Instant>,
    /// `nodes_started` of the first ack: cordoned, not drained.
    pub(crate) first_ack: Option<i32>,
    /// The operator's drain is over. May come without a first ack.
    pub(crate) finished: bool,
    /// The session ended, or was replaced, before any ack.
    pub(crate) session_ended: bool,
}

/// Every instruction somebody still listens for, of all clusters.
#[derive(Default)]
pub(super) struct Instructions {
    known: Mutex<HashMap<String, (ClusterId, watch::Sender<Progress>)>>,
}

impl Instructions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (ClusterId, watch::Sender<Progress>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens for acks of an instruction that is about to be queued.
    pub(super) fn expect(
        self: &Arc<Self>,
        id: String,
        session: &Arc<Session>,
    ) -> (Instruction, watch::Sender<Progress>) {
        let (sender, progress) = watch::channel(Progress::default());
        self.lock().insert(id.clone(), (session.cluster().clone(), sender.clone()));
        let instruction = Instruction {
            id,
            features: session.opening.features,
            progress,
            session: Arc::downgrade(session),
            instructions: self.clone(),
        };
        (instruction, sender)
    }

    /// Takes in an ack that came on any session of the cluster. Unknown ids and
    /// those of other clusters change nothing.
    pub(super) fn ack(&self, cluster: &ClusterId, ack: &wire::ReclaimAck) {
        let known = self.lock();
        let Some((owner, progress)) = known.get(&ack.instruction_id) else {
            return;
        };
        if owner == cluster {
            progress.send_modify(|progress| {
                if ack.finished {
                    progress.finished = true;
                } else if progress.first_ack.is_none() {
                    progress.first_ack = Some(ack.nodes_started);
                }
            });
        }
    }
}

/// An instruction that somebody follows. Dropped, it is forgotten, and taken back
/// if it was not written yet: nobody would hear its answer.
pub(crate) struct Instruction {
    /// Names it on the wire.
    pub(crate) id: String,
    /// What the operator promised that got it. Its session may be gone when the
    /// promise counts.
    pub(crate) features: Features,
    /// How far it has come; ends never by itself.
    pub(crate) progress: watch::Receiver<Progress>,
    session: Weak<Session>,
    instructions: Arc<Instructions>,
}

impl Instruction {
    /// Takes it out of the outbox; false if it was written already, or dropped
    /// with its session.
    pub(crate) fn take_back(&self) -> bool {
        self.session.upgrade().is_some_and(|session| session.outbox().take_back(&self.id))
    }
}

impl Drop for Instruction {
    fn drop(&mut self) {
        self.instructions.lock().remove(&self.id);
        if let Some(session) = self.session.upgrade() {
            session.outbox().take_back(&self.id);
            session.forget(&self.id);
        }
    }
}
