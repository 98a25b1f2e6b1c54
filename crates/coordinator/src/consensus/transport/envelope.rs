//! Envelopes and answers as messages.

use openraft::{
    SnapshotMeta,
    error::InstallSnapshotError,
    raft::{
        AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest,
        InstallSnapshotResponse, VoteRequest, VoteResponse,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    super::{
        codec::{self, CodecError},
        message::{Envelope, Request, Response},
        types::{LogId, Member, MemberId, Vote},
    },
    proto,
};
use crate::log::Position;

/// A message that is not of the protocol.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadMessage {
    #[error("entry cannot be read: {0}")]
    Entry(#[from] CodecError),
    #[error("header cannot be read: {0}")]
    Header(#[from] serde_json::Error),
    #[error("kind {0} is not known; upgrade this replica")]
    Kind(i32),
    #[error("field {0} is missing")]
    Missing(&'static str),
}

#[derive(Serialize, Deserialize)]
struct AppendHeader {
    vote: Vote,
    prev_log_id: Option<LogId>,
    leader_commit: Option<LogId>,
}

#[derive(Serialize, Deserialize)]
struct SnapshotHeader {
    vote: Vote,
    meta: SnapshotMeta<MemberId, Member>,
    offset: u64,
    done: bool,
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, BadMessage> {
    Ok(serde_json::to_vec(value)?)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BadMessage> {
    Ok(serde_json::from_slice(bytes)?)
}

const fn member(id: MemberId) -> proto::Member {
    proto::Member { node: id.node, incarnation: id.incarnation }
}

/// For the wire.
pub(super) fn write(envelope: Envelope) -> Result<proto::CallRequest, BadMessage> {
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    let (kind, header) = match envelope.request {
        Request::Append(AppendEntriesRequest {
            vote,
            prev_log_id,
            entries: all,
            leader_commit,
        }) => {
            for entry in &all {
                let Position { term, index } = codec::position(entry);
                entries.push(proto::Entry { term, index, payload: codec::encode(entry)? });
            }
            (proto::Kind::Append, json(&AppendHeader { vote, prev_log_id, leader_commit })?)
        }
        Request::Vote(vote) => (proto::Kind::Vote, json(&vote)?),
        Request::Snapshot(InstallSnapshotRequest { vote, meta, offset, data: part, done }) => {
            data = part;
            (proto::Kind::Snapshot, json(&SnapshotHeader { vote, meta, offset, done })?)
        }
        Request::PreVote(last) => (proto::Kind::PreVote, json(&last)?),
        Request::Campaign => (proto::Kind::Campaign, Vec::new()),
        Request::Pulse(term) => (proto::Kind::Pulse, json(&term)?),
    };
    Ok(proto::CallRequest {
        fleet_id: envelope.fleet_id,
        from: Some(member(envelope.from)),
        to: Some(member(envelope.to)),
        kind: kind.into(),
        header,
        entries,
        data,
    })
}

/// From the wire.
pub(super) fn read(call: proto::CallRequest) -> Result<Envelope, BadMessage> {
    let id = |member: Option<proto::Member>, field| {
        let proto::Member { node, incarnation } = member.ok_or(BadMessage::Missing(field))?;
        Ok::<_, BadMessage>(MemberId { node, incarnation })
    };
    let request = match proto::Kind::try_from(call.kind) {
        Ok(proto::Kind::Append) => {
            let AppendHeader { vote, prev_log_id, leader_commit } = parse(&call.header)?;
            let entry = |entry: proto::Entry| {
                let at = Position { term: entry.term, index: entry.index };
                codec::decode(at, &entry.payload)
            };
            let entries = call.entries.into_iter().map(entry).collect::<Result<_, _>>()?;
            Request::Append(AppendEntriesRequest { vote, prev_log_id, entries, leader_commit })
        }
        Ok(proto::Kind::Vote) => Request::Vote(parse::<VoteRequest<MemberId>>(&call.header)?),
        Ok(proto::Kind::Snapshot) => {
            let SnapshotHeader { vote, meta, offset, done } = parse(&call.header)?;
            let data = call.data;
            Request::Snapshot(InstallSnapshotRequest { vote, meta, offset, data, done })
        }
        Ok(proto::Kind::PreVote) => Request::PreVote(parse(&call.header)?),
        Ok(proto::Kind::Campaign) => Request::Campaign,
        Ok(proto::Kind::Pulse) => Request::Pulse(parse(&call.header)?),
        Ok(proto::Kind::Unspecified) | Err(_) => return Err(BadMessage::Kind(call.kind)),
    };
    let (from, to) = (id(call.from, "from")?, id(call.to, "to")?);
    Ok(Envelope { fleet_id: call.fleet_id, from, to, request })
}

/// An answer for the wire.
pub(super) fn write_answer(answer: &Response) -> Result<proto::CallResponse, BadMessage> {
    let header = match answer {
        Response::Append(answer) => json(answer)?,
        Response::Vote(answer) => json(answer)?,
        Response::Snapshot(answer) => json(answer)?,
        Response::PreVote(answer) | Response::Pulse(answer) => json(answer)?,
        Response::Campaign => Vec::new(),
    };
    Ok(proto::CallResponse { header })
}

/// The answer to a request of this kind.
pub(super) fn read_answer(kind: i32, answer: &proto::CallResponse) -> Result<Response, BadMessage> {
    let header = &answer.header;
    Ok(match proto::Kind::try_from(kind) {
        Ok(proto::Kind::Append) => {
            Response::Append(parse::<AppendEntriesResponse<MemberId>>(header)?)
        }
        Ok(proto::Kind::Vote) => Response::Vote(parse::<VoteResponse<MemberId>>(header)?),
        Ok(proto::Kind::Snapshot) => Response::Snapshot(parse::<
            Result<InstallSnapshotResponse<MemberId>, InstallSnapshotError>,
        >(header)?),
        Ok(proto::Kind::PreVote) => Response::PreVote(parse(header)?),
        Ok(proto::Kind::Campaign) => Response::Campaign,
        Ok(proto::Kind::Pulse) => Response::Pulse(parse(header)?),
        Ok(proto::Kind::Unspecified) | Err(_) => return Err(BadMessage::Kind(kind)),
    })
}
