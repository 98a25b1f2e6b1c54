//! What replicas say to each other on the consensus port.

use std::{future::Future, pin::Pin};

use openraft::{
    error::InstallSnapshotError,
    raft::{
        AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest,
        InstallSnapshotResponse, VoteRequest, VoteResponse,
    },
};

use super::types::{LogId, Member, MemberId, Types};

/// A request to one member of one fleet.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The sender's fleet. Another fleet's replica refuses it.
    pub fleet_id: String,
    /// Who sends.
    pub from: MemberId,
    /// Whom it is for. A wiped replica is somebody else and refuses it.
    pub to: MemberId,
    /// What is asked.
    pub request: Request,
}

/// What is asked.
#[derive(Debug, Clone)]
pub enum Request {
    /// Entries, or how far they are committed.
    Append(AppendEntriesRequest<Types>),
    /// A vote.
    Vote(VoteRequest<MemberId>),
    /// A part of a snapshot.
    Snapshot(InstallSnapshotRequest<Types>),
    /// Whether a vote would be given, now, to one whose log ends here. Changes
    /// nothing: a replica that cannot win disturbs nobody.
    PreVote(Option<LogId>),
    /// The leader goes and wants this replica to follow it.
    Campaign,
    /// The leader of this term lives. Answered beside the library, which may be waiting for
    /// its disk.
    Pulse(u64),
}

/// The answer.
#[derive(Debug)]
pub enum Response {
    /// To [`Request::Append`].
    Append(AppendEntriesResponse<MemberId>),
    /// To [`Request::Vote`].
    Vote(VoteResponse<MemberId>),
    /// To [`Request::Snapshot`].
    Snapshot(Result<InstallSnapshotResponse<MemberId>, InstallSnapshotError>),
    /// To [`Request::PreVote`].
    PreVote(bool),
    /// To [`Request::Campaign`].
    Campaign,
    /// To [`Request::Pulse`]: whether this replica will vote for nobody else for a while.
    Pulse(bool),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody was reached, or nobody answered.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// The other side does not talk to us.
    #[error("refused: {0}")]
    Refused(String),
}

/// A future in a box.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Carries requests to members. Addresses are names, resolved at every dial.
pub trait Transport: Send + Sync + 'static {
    /// Sends to a member and waits for its answer. The caller bounds the time.
    fn call<'a>(
        &'a self,
        to: &'a Member,
        envelope: Envelope,
    ) -> Answer<'a, Result<Response, CallError>>;
}
