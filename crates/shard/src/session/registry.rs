//! Which clusters are connected, and how the rest of the shard speaks to them.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bigfleet_model::{ClusterId, MachineId};
use bigfleet_wire::v1alpha1::{self as wire, shard_message::Payload};
use prometheus_client::metrics::counter::Counter;
use tonic::Status;

use super::{
    blob::BlobWait,
    id,
    instruction::{Instruction, Instructions},
    lanes::Outgoing,
    link::Session,
};

/// The cluster has no session that takes a request now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cluster's operator has no session; it will connect again by itself")]
pub(crate) struct NoSession;

/// Limits and counters of the session layer.
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    /// Time for the first frame.
    pub(crate) hello_limit: Duration,
    /// A stream on which frames wait for so long and none goes out is ended.
    pub(crate) write_limit: Duration,
    /// `session_identity_rejected_total`.
    pub(crate) identity_rejected: Counter,
    /// `session_lifecycle_total{event="installed"}`.
    pub(crate) installed: Counter,
    /// `session_lifecycle_total{event="removed"}`.
    pub(crate) removed: Counter,
    /// `session_lifecycle_total{event="replaced"}`.
    pub(crate) replaced: Counter,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            hello_limit: Duration::from_secs(10),
            write_limit: Duration::from_secs(30),
            identity_rejected: Counter::default(),
            installed: Counter::default(),
            removed: Counter::default(),
            replaced: Counter::default(),
        }
    }
}

/// What there is to see of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectedSession {
    /// Whose.
    pub(crate) cluster: ClusterId,
    /// Since when.
    pub(crate) since_unix_nanos: i64,
    /// Remote address.
    pub(crate) peer: String,
    /// As said in Hello.
    pub(crate) protocol_version: String,
    /// As said in Hello.
    pub(crate) features: Vec<String>,
    /// Frames that wait, of both lanes.
    pub(crate) outbox_depth: usize,
}

/// Every session of this shard. Clones share one state.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Inner>);

struct Inner {
    options: SessionOptions,
    by_cluster: RwLock<HashMap<ClusterId, Arc<Session>>>,
    changes: AtomicU64,
    instructions: Arc<Instructions>,
}

impl Sessions {
    /// Without any session.
    pub(crate) fn new(options: SessionOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            by_cluster: RwLock::default(),
            changes: AtomicU64::new(0),
            instructions: Arc::default(),
        }))
    }

    pub(super) fn options(&self) -> &SessionOptions {
        &self.0.options
    }

    /// Whether the cluster's operator is here.
    pub(crate) fn is_connected(&self, cluster: &ClusterId) -> bool {
        self.read().contains_key(cluster)
    }

    /// How many clusters are connected.
    pub(crate) fn count(&self) -> usize {
        self.read().len()
    }

    /// The clusters that are connected, sorted.
    pub(crate) fn connected(&self) -> Vec<ClusterId> {
        let mut clusters: Vec<_> = self.read().keys().cloned().collect();
        clusters.sort_unstable();
        clusters
    }

    /// Rises with every session installed or removed.
    #[cfg(test)]
    pub(crate) fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// What the cluster's operator does and understands; none without a session.
    #[cfg(test)]
    pub(crate) fn features(&self, cluster: &ClusterId) -> Option<super::Features> {
        self.of(cluster).map(|session| session.opening.features)
    }

    /// Whether the cluster's operator wants to know how its needs stand, and has all
    /// that it was to be told before.
    pub(crate) fn takes_need_status(&self, cluster: &ClusterId) -> bool {
        let session = self.of(cluster);
        session.is_some_and(|one| one.opening.features.need_status && one.is_resynced())
    }

    /// All sessions, by cluster.
    pub(crate) fn views(&self) -> Vec<ConnectedSession> {
        let view = |session: &Arc<Session>| {
            let opening = &session.opening;
            ConnectedSession {
                cluster: opening.cluster.clone(),
                since_unix_nanos: opening.since_unix_nanos,
                peer: opening.peer.to_string(),
                protocol_version: opening.protocol_version.clone(),
                features: opening.feature_names.clone(),
                outbox_depth: session.outbox().depth(),
            }
        };
        let mut views: Vec<_> = self.read().values().map(view).collect();
        views.sort_unstable_by(|a, b| a.cluster.cmp(&b.cluster));
        views
    }

    /// Frames that wait on all sessions together.
    pub(crate) fn outbox_depth(&self) -> usize {
        self.read().values().map(|session| session.outbox().depth()).sum()
    }

    /// Queues a state frame, over one of the same key that waits. Without a session
    /// it is dropped, and false; the next replay repairs that.
    pub(crate) fn put_state(
        &self,
        cluster: &ClusterId,
        key: String,
        message: wire::ShardMessage,
    ) -> bool {
        // Under the map's lock: a session installed next gets what comes next, and
        // a replay begins only after its install.
        self.read().get(cluster).is_some_and(|session| session.outbox().put_state(key, message))
    }

    /// Asks for a bootstrap blob. The wait ends at once when the session does; how
    /// long to wait otherwise is the caller's.
    pub(crate) fn request_blob(
        &self,
        cluster: &ClusterId,
        requirements: Vec<wire::NodeSelectorRequirement>,
        machine: &MachineId,
    ) -> Result<BlobWait, NoSession> {
        let session = self.of(cluster).ok_or(NoSession)?;
        let id = fresh_id()?;
        let answer = session.await_blob(&id).ok_or(NoSession)?;
        // From here on its drop cleans up.
        let wait = BlobWait { id: id.clone(), answer, session: Arc::downgrade(&session) };
        let request = wire::BootstrapRequest {
            request_id: id,
            requirements,
            cluster_id: cluster.to_string(),
            machine_id: machine.to_string(),
        };
        let message = wire::ShardMessage { payload: Some(Payload::BootstrapRequest(request)) };
        session.outbox().push_control(message).map_err(|_| NoSession)?;
        Ok(wait)
    }

    /// Tells the operator to drain a machine within its grace.
    pub(crate) fn instruct(
        &self,
        cluster: &ClusterId,
        machine: &MachineId,
        grace: Duration,
        preemptor_priority: i32,
    ) -> Result<Instruction, NoSession> {
        let session = self.of(cluster).ok_or(NoSession)?;
        let id = fresh_id()?;
        // From here on its drop cleans up.
        let (instruction, progress) = self.0.instructions.expect(id.clone(), &session);
        if !session.await_ack(&id, progress.clone()) {
            return Err(NoSession);
        }
        let payload = Payload::ReclaimInstruction(wire::ReclaimInstruction {
            instruction_id: id,
            nodes: vec![machine.to_string()],
            grace_period_seconds: i64::try_from(grace.as_secs()).unwrap_or(i64::MAX),
            preemptor_priority,
        });
        let message = wire::ShardMessage { payload: Some(payload) };
        let frame = Outgoing { message, progress: Some(progress) };
        session.outbox().push_control(frame).map_err(|_| NoSession)?;
        Ok(instruction)
    }

    /// Ends a cluster's session, if it has one; its operator connects again by itself.
    pub(crate) fn end(&self, cluster: &ClusterId, why: &'static str) {
        if let Some(session) = self.of(cluster) {
            session.end(Some(Status::unavailable(why)));
        }
    }

    /// Takes in an ack that came on this session.
    pub(super) fn reclaim_ack(&self, session: &Session, ack: &wire::ReclaimAck) {
        session.acked(&ack.instruction_id);
        self.0.instructions.ack(session.cluster(), ack);
    }

    /// Makes this its cluster's session and ends the one before.
    pub(super) fn install(&self, session: Arc<Session>) {
        let cluster = session.cluster().clone();
        let replaced = self.write().insert(cluster, session);
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        self.0.options.installed.inc();
        if let Some(old) = replaced {
            tracing::warn!(
                cluster = %old.cluster(), peer = %old.opening.peer,
                "session replaced by a newer one of the same cluster"
            );
            self.0.options.replaced.inc();
            old.end(Some(Status::aborted("replaced by a newer session of this cluster")));
        }
    }

    /// Removes this session if it is still its cluster's; true if so.
    pub(super) fn remove(&self, session: &Arc<Session>) -> bool {
        let mut by_cluster = self.write();
        let own = by_cluster.get(session.cluster()).is_some_and(|now| Arc::ptr_eq(now, session));
        if own {
            by_cluster.remove(session.cluster());
            drop(by_cluster);
            self.0.changes.fetch_add(1, Ordering::AcqRel);
            self.0.options.removed.inc();
        }
        own
    }

    fn of(&self, cluster: &ClusterId) -> Option<Arc<Session>> {
        self.read().get(cluster).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<ClusterId, Arc<Session>>> {
        self.0.by_cluster.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<ClusterId, Arc<Session>>> {
        self.0.by_cluster.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without randomness of the system nothing can be asked; the action is rolled
/// back and decided again.
fn fresh_id() -> Result<String, NoSession> {
    id::fresh().map_err(|error| {
        tracing::error!(%error, "no random bytes from the system for a request id");
        NoSession
    })
}
