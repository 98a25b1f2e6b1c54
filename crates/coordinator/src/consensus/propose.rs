//! From a command to a commit.

use std::{sync::Arc, time::Duration};

use openraft::error::ClientWriteError;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use super::{
    handle::{Consensus, Leadership, Shared},
    peers::Phase,
    types::{Outcome, Proposal},
};
use crate::state::Command;

/// Commands in one entry.
const ENTRY_COMMANDS: usize = 512;
/// Bytes of commands in one entry, but for a single larger one.
const ENTRY_BYTES: usize = 1 << 20;
/// Entries on their way at once: while one is on the disks of others, the next
/// is being written here, and the rest gathers into the one after.
const ENTRIES: usize = 2;

/// The library says nothing of an entry that a snapshot took in on a replica
/// that led once; its place among [`ENTRIES`] is given free after this.
const LONGEST: Duration = Duration::from_secs(10);

/// Why a command was not committed, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// This replica does not lead, or no longer does.
    #[error("coordinator: not leader")]
    NotLeader,
    /// Leadership was lost while the command waited: another leader may commit it yet.
    #[error("coordinator: not leader")]
    Deposed,
    /// The fleet has not opened.
    #[error("forming")]
    Forming,
    /// A newer history of the fleet exists.
    #[error("superseded by {0}")]
    Superseded(String),
    /// A replica would halt on it.
    #[error(
        "replica {node_id} applies commands up to kind {max_kind}, this is kind {kind}: upgrade it first"
    )]
    TooNew {
        /// The replica.
        node_id: String,
        /// The highest kind that it can apply.
        max_kind: u32,
        /// The command's.
        kind: u32,
    },
    /// Outcome unknown, safe to retry.
    #[error("no quorum in time: the outcome is unknown, retry")]
    Unavailable,
}

/// A command that was committed, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its entry.
    pub index: u64,
    /// What the state machine said.
    pub outcome: Outcome,
}

type Answer = Result<Committed, ProposeError>;

/// A command that waits for its entry.
pub(super) struct Pending {
    kind: u32,
    bytes: Vec<u8>,
    tell: oneshot::Sender<Answer>,
}

impl Consensus {
    /// Commits a command. Within `limit` the answer is known, or it is
    /// [`ProposeError::Unavailable`] or [`ProposeError::Deposed`].
    pub async fn propose(&self, command: &Command, limit: Duration) -> Answer {
        if let Some(by) = self.shared.superseded_by() {
            return Err(ProposeError::Superseded(by));
        }
        if self.shared.serving().is_none() {
            return Err(ProposeError::NotLeader);
        }
        if self.shared.phase() != Phase::Open {
            return Err(ProposeError::Forming);
        }
        self.shared.propose(command, limit).await
    }
}

impl Shared {
    pub(super) async fn propose(&self, command: &Command, limit: Duration) -> Answer {
        let (tell, told) = oneshot::channel();
        let mut leadership = self.leadership.subscribe();
        let pending = Pending { kind: command.kind(), bytes: command.encode(), tell };
        if self.queue.send(pending).is_err() {
            return Err(ProposeError::Unavailable);
        }
        let deposed = async {
            // Published leadership lags a little behind the lease, both ways.
            let led = leadership.borrow_and_update().clone();
            let gone =
                leadership.wait_for(|now| matches!(led, Leadership::Leader { .. }) && *now != led);
            if gone.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            answer = timeout(limit, told) => match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Err(ProposeError::Unavailable),
            },
            () = deposed => Err(ProposeError::Deposed),
        }
    }
}

/// Makes entries of what waits.
pub(super) async fn pump(shared: Arc<Shared>, mut queue: mpsc::UnboundedReceiver<Pending>) {
    let entries = Arc::new(Semaphore::new(ENTRIES));
    while let Some(first) = queue.recv().await {
        let Ok(permit) = Arc::clone(&entries).acquire_owned().await else { return };
        let mut bytes = first.bytes.len();
        let mut batch = vec![first];
        while batch.len() < ENTRY_COMMANDS && bytes < ENTRY_BYTES {
            let Ok(next) = queue.try_recv() else { break };
            bytes += next.bytes.len();
            batch.push(next);
        }
        let Some(entry) = shared.append(batch).await else { continue };
        tokio::spawn(async move {
            entry.settle().await;
            drop(permit);
        });
    }
}

type Written = <openraft::impls::OneshotResponder<super::types::Types> as openraft::raft::responder::Responder<super::types::Types>>::Receiver;

struct Appended {
    written: Written,
    tell: Vec<oneshot::Sender<Answer>>,
}

impl Shared {
    /// Hands one entry to the library, under the gate that membership changes
    /// have alone.
    async fn append(&self, batch: Vec<Pending>) -> Option<Appended> {
        let _gate = self.gate.read().await;
        let running = self.running().filter(|_| self.serving().is_some());
        let Some(running) = running else {
            batch.into_iter().for_each(|one| drop(one.tell.send(Err(ProposeError::NotLeader))));
            return None;
        };
        let members = running.members();
        let oldest = members.nodes().map(|(_, member)| member).min_by_key(|one| one.max_kind)?;
        let (mut commands, mut tell) = (Vec::new(), Vec::new());
        for one in batch {
            if one.tell.is_closed() {
                // Nobody waits any more: what was not begun is not begun late.
                continue;
            }
            if one.kind > oldest.max_kind {
                let (node_id, max_kind) = (oldest.node_id.clone(), oldest.max_kind);
                let refusal = ProposeError::TooNew { node_id, max_kind, kind: one.kind };
                let _ = one.tell.send(Err(refusal));
            } else {
                commands.push(one.bytes);
                tell.push(one.tell);
            }
        }
        if commands.is_empty() {
            return None;
        }
        let written = running.raft.client_write_ff(Proposal { commands }).await;
        Some(Appended { written: written.ok()?, tell })
    }
}

impl Appended {
    async fn settle(self) {
        let Ok(written) = timeout(LONGEST, self.written).await else { return };
        let answers: Vec<Answer> = match written {
            Ok(Ok(done)) => {
                let index = done.log_id.index;
                done.data.0.into_iter().map(|outcome| Ok(Committed { index, outcome })).collect()
            }
            // The entry was never appended, or another leader's took its place.
            Ok(Err(ClientWriteError::ForwardToLeader(_))) => {
                self.tell.iter().map(|_| Err(ProposeError::NotLeader)).collect()
            }
            _ => Vec::new(),
        };
        // Who gets no answer sees its sender dropped: outcome unknown.
        for (tell, answer) in self.tell.into_iter().zip(answers) {
            let _ = tell.send(answer);
        }
    }
}
