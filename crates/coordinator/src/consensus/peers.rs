//! What a replica asks of the others on the service port, before and besides
//! consensus.

use super::message::Answer;
pub use crate::service::Joiner;

/// How far a replica has come (§4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing on disk but an incarnation.
    #[default]
    Empty,
    /// A log under a new uuid, no InitFleet yet.
    Forming,
    /// InitFleet is in the log.
    Open,
    /// A newer history of the fleet was seen.
    Superseded,
}

impl Phase {
    /// As `RaftStatus.phase` says it.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// From `RaftStatus.phase`; what is not known counts as open, the most careful reading.
    #[must_use]
    pub const fn from_number(number: i32) -> Self {
        match number {
            0 => Self::Empty,
            1 => Self::Forming,
            3 => Self::Superseded,
            _ => Self::Open,
        }
    }
}

/// What `RaftStatus` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Who answers.
    pub node_id: String,
    /// Its fleet; empty in phase 0.
    pub fleet_id: String,
    /// How far it has come.
    pub phase: Phase,
    /// follower, learner, candidate or leader.
    pub role: &'static str,
    /// The coordinator term.
    pub term: i64,
    /// Node id of the leader it observes.
    pub leader_id: String,
    /// Where that leader serves.
    pub leader_grpc_address: String,
    /// Last entry known to be committed.
    pub commit_index: u64,
    /// Last entry applied.
    pub applied_index: u64,
    /// Node ids of the voters.
    pub voters: Vec<String>,
}

/// How [`MembershipError::NoLongerAMember`] is known on the other side of a call.
pub(crate) const NO_LONGER_A_MEMBER: &str = "is no longer a member";

/// Why a join, or a removal, did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// This replica does not lead.
    #[error("coordinator: not leader")]
    NotLeader,
    /// The joiner has data of a member that was removed or replaced.
    #[error("replica {0} {NO_LONGER_A_MEMBER}: empty its data directory to join anew")]
    NoLongerAMember(String),
    /// Never, as asked.
    #[error("{0}")]
    Refused(String),
    /// No such member.
    #[error("no member has node id {0}; see raft-status")]
    NotFound(String),
    /// Not now: the group would be lost.
    #[error("{0}")]
    Aborted(String),
    /// Outcome unknown, ask again.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// The addresses behind `--join-addr`.
pub trait Peers: Send + Sync + 'static {
    /// Asks every address, resolved now, for its status. One that is silent
    /// is an error with its address, never "empty".
    fn statuses(&self) -> Answer<'_, Vec<Result<Status, String>>>;
    /// Finds the leader with a fresh dial and asks it to let this replica in.
    fn join(&self, request: Joiner) -> Answer<'_, Result<(), MembershipError>>;
}
