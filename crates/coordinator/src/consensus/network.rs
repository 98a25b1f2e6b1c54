//! The consensus library's way to its peers.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use openraft::{
    error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable},
    network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory},
    raft::{
        AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest,
        InstallSnapshotResponse, VoteRequest, VoteResponse,
    },
};
use tokio::time::Instant;

use super::{
    lease::Lease,
    message::{CallError, Envelope, Request, Response, Transport},
    types::{Member, MemberId, Types},
};

/// The fleet that a replica is in, as soon as it is in one.
#[derive(Debug, Clone, Default)]
pub(crate) struct FleetCell(Arc<RwLock<Option<String>>>);

impl FleetCell {
    pub(crate) fn get(&self) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, fleet_id: Option<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = fleet_id;
    }
}

/// Speaks for one member.
#[derive(Clone)]
pub(crate) struct Speaker {
    pub(crate) me: MemberId,
    pub(crate) fleet: FleetCell,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) lease: Arc<Lease>,
    /// Pause before a peer that was out of reach is tried again.
    pub(crate) pause: Duration,
}

impl Speaker {
    pub(crate) async fn call(
        &self,
        to: MemberId,
        member: &Member,
        request: Request,
    ) -> Result<Response, CallError> {
        let fleet_id = self.fleet.get().unwrap_or_default();
        let envelope = Envelope { fleet_id, from: self.me, to, request };
        self.transport.call(member, envelope).await
    }
}

impl RaftNetworkFactory<Types> for Speaker {
    type Network = Line;

    async fn new_client(&mut self, target: MemberId, member: &Member) -> Line {
        Line { speaker: self.clone(), target, member: member.clone() }
    }
}

/// One member speaking to another.
pub(crate) struct Line {
    speaker: Speaker,
    target: MemberId,
    member: Member,
}

type Failure<E> = RPCError<MemberId, Member, E>;

impl Line {
    async fn call<E: std::error::Error>(&self, request: Request) -> Result<Response, Failure<E>> {
        let answer = self.speaker.call(self.target, &self.member, request).await;
        answer.map_err(|error| RPCError::Unreachable(Unreachable::new(&error)))
    }
}

fn mismatch<E: std::error::Error>() -> Failure<E> {
    let error = CallError::Refused("the answer is to another question".to_owned());
    RPCError::Unreachable(Unreachable::new(&error))
}

impl RaftNetwork<Types> for Line {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<MemberId>, Failure<RaftError<MemberId>>> {
        let (term, sent) = (rpc.vote.leader_id().get_term(), Instant::now());
        let Response::Append(answer) = self.call(Request::Append(rpc)).await? else {
            return Err(mismatch());
        };
        if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
            self.speaker.lease.acknowledged(self.target, term, sent);
        }
        Ok(answer)
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<Types>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<MemberId>, Failure<RaftError<MemberId, InstallSnapshotError>>>
    {
        match self.call(Request::Snapshot(rpc)).await? {
            Response::Snapshot(Ok(answer)) => Ok(answer),
            Response::Snapshot(Err(error)) => Err(RPCError::RemoteError(RemoteError::new(
                self.target,
                RaftError::APIError(error),
            ))),
            _ => Err(mismatch()),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<MemberId>,
        _option: RPCOption,
    ) -> Result<VoteResponse<MemberId>, Failure<RaftError<MemberId>>> {
        match self.call(Request::Vote(rpc)).await? {
            Response::Vote(answer) => Ok(answer),
            _ => Err(mismatch()),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(self.speaker.pause))
    }
}
