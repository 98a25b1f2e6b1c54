//! What the service asks of consensus.

use std::{future::Future, sync::Arc};

use bigfleet_wire::v1alpha1::RaftStatusResponse;

use crate::state::{Command, Effect, Refused, State};

/// One replica of the coordinator, as the service sees it.
pub trait Replica: Send + Sync + 'static {
    /// How far this replica is.
    fn phase(&self) -> Phase;

    /// Whether it leads. Only a leader that has committed an entry of its own and applied
    /// all before it says so.
    fn leadership(&self) -> Leadership;

    /// Why clients should not be sent here although somebody leads, if so.
    fn ailing(&self) -> Option<&'static str> {
        None
    }

    /// Commits a command and applies it. An error leaves the outcome unknown, but for
    /// [`ReplicaError::NotLeader`].
    fn propose(
        &self,
        command: Command,
    ) -> impl Future<Output = Result<Result<Effect, Refused>, ReplicaError>> + Send;

    /// Returns when this replica is known to lead still, by its lease or a round with its
    /// peers, and all that was committed before is applied: what [`Replica::look`] shows
    /// then is not older than this call.
    fn barrier(&self) -> impl Future<Output = Result<(), ReplicaError>> + Send;

    /// Looks at the state as it is applied here. Short: commands wait meanwhile.
    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T;

    /// For `RaftStatus`, which every replica answers.
    fn status(&self) -> RaftStatusResponse;

    /// Takes a replica into the group, or rewrites its address.
    fn join(&self, joiner: Joiner) -> impl Future<Output = Result<(), ReplicaError>> + Send;

    /// Takes a replica out of the group.
    fn remove_server(
        &self,
        node_id: String,
    ) -> impl Future<Output = Result<(), ReplicaError>> + Send;

    /// The newest snapshot; none if nothing has been applied yet.
    fn snapshot(&self) -> impl Future<Output = Result<Option<Snapshot>, ReplicaError>> + Send;
}

/// How far a replica is (coordinator chapter §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has nothing but an incarnation.
    Empty,
    /// The group is not complete.
    Forming,
    /// It serves.
    Open,
    /// A restore has made a newer generation of its fleet.
    Superseded {
        /// That generation.
        by: String,
    },
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// This replica.
    Leader {
        /// The coordinator term: generation and consensus term.
        term: i64,
    },
    /// Another one, or nobody knows.
    Follower {
        /// Where to go instead.
        leader: Option<LeaderHint>,
    },
}

impl Leadership {
    /// Whether anybody leads.
    #[must_use]
    pub const fn observed(&self) -> bool {
        matches!(self, Self::Leader { .. } | Self::Follower { leader: Some(_) })
    }
}

/// The leader, for those who asked somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderHint {
    /// Its node id.
    pub node_id: String,
    /// Where it serves.
    pub grpc_address: String,
}

/// A replica that wants to be of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joiner {
    /// Its stable id.
    pub node_id: String,
    /// Where its peers dial it.
    pub raft_address: String,
    /// Where clients are sent to.
    pub grpc_address: String,
    /// Empty if its disk is.
    pub fleet_id: String,
    /// The highest kind that it can apply; 0 if it gave none.
    pub max_kind: u32,
    /// 0 if it gave none.
    pub incarnation: u64,
}

/// What `SnapshotSave` sends.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// JSON of index, term and configuration.
    pub meta_json: Vec<u8>,
    /// The payload.
    pub state: Arc<[u8]>,
}

/// What consensus could not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaError {
    /// It does not lead, or no longer.
    #[error("coordinator: not leader")]
    NotLeader(Option<LeaderHint>),
    /// No quorum, or it is stopping; the outcome is unknown.
    #[error("{0}")]
    Unavailable(String),
    /// No such replica.
    #[error("{0}")]
    NotFound(String),
    /// The group must not change so.
    #[error("{0}")]
    Refused(String),
}
