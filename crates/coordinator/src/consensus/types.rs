//! The types that the consensus library is told to use.

use std::{fmt, io::Cursor, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::state::{Effect, Refused};

/// A consensus member is (node id, incarnation): a wiped replica is a *new*
/// member and never counts as the voter it was, for it has forgotten its
/// votes and what it acknowledged. The library wants ids that are copied, so
/// the node id stands here by the first 8 bytes of its SHA-256; its text is in
/// [`Member`], and a join under a node id that collides with another is refused.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub struct MemberId {
    /// Digest of the node id.
    pub node: u64,
    /// Made at random with the data directory.
    pub incarnation: u64,
}

impl MemberId {
    /// The member that a replica is.
    #[must_use]
    pub fn new(node_id: &str, incarnation: u64) -> Self {
        let digest = Sha256::digest(node_id.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        Self { node: u64::from_be_bytes(first), incarnation }
    }

    /// Whether it is this node, of any incarnation.
    #[must_use]
    pub fn is_node(&self, node_id: &str) -> bool {
        self.node == Self::new(node_id, 0).node
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{:016x}", self.node, self.incarnation)
    }
}

impl From<MemberId> for String {
    fn from(id: MemberId) -> Self {
        id.to_string()
    }
}

/// A text that is no member id.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not <16 hex digits>.<16 hex digits>")]
pub struct BadMemberId(String);

impl FromStr for MemberId {
    type Err = BadMemberId;

    fn from_str(text: &str) -> Result<Self, BadMemberId> {
        let bad = || BadMemberId(text.to_owned());
        let (node, incarnation) = text.split_once('.').ok_or_else(bad)?;
        let hex = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| bad());
        Ok(Self { node: hex(node)?, incarnation: hex(incarnation)? })
    }
}

impl TryFrom<String> for MemberId {
    type Error = BadMemberId;

    fn try_from(text: String) -> Result<Self, BadMemberId> {
        text.parse()
    }
}

/// What the membership says of a member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// Its node id.
    pub node_id: String,
    /// Where peers dial it: a name, resolved anew at each dial.
    pub raft_address: String,
    /// Where clients are sent to.
    pub grpc_address: String,
    /// The highest command kind that it can apply.
    pub max_kind: u32,
}

/// One log entry's worth of commands, each as it is encoded.
///
/// The library appends and syncs one entry at a time on the leader, so
/// proposals that wait together become one entry: this is where one fsync
/// serves many commits. They share its index, as the commands of a Batch do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Encoded commands, applied in order.
    pub commands: Vec<Vec<u8>>,
}

/// What became of each command of an entry. Never leaves the process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcomes(#[serde(skip)] pub Vec<Outcome>);

/// What became of one command.
pub type Outcome = Result<Effect, Refused>;

openraft::declare_raft_types!(
    /// Ties the library to the types above.
    pub Types:
        D = Proposal,
        R = Outcomes,
        NodeId = MemberId,
        Node = Member,
);

/// Where an entry stands.
pub(crate) type LogId = openraft::LogId<MemberId>;
/// An entry.
pub(crate) type Entry = openraft::Entry<Types>;
/// Term and vote, as the library has them.
pub(crate) type Vote = openraft::Vote<MemberId>;
/// A candidate asks.
pub(crate) type VoteRequest = openraft::raft::VoteRequest<MemberId>;
/// A voter answers.
pub(crate) type VoteResponse = openraft::raft::VoteResponse<MemberId>;
/// The members at some entry.
pub(crate) type StoredMembership = openraft::StoredMembership<MemberId, Member>;
/// The members.
pub(crate) type Membership = openraft::Membership<MemberId, Member>;
/// The library's handle.
pub(crate) type Raft = openraft::Raft<Types>;
/// The library's storage error.
pub(crate) type StorageError = openraft::StorageError<MemberId>;

pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(openraft::CommittedLeaderId::new(term, MemberId::default()), index)
}
