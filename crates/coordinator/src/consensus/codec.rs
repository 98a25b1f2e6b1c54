//! Entries as bytes, in the log and between replicas.
//!
//! The layout is ours and numbered, so that a newer consensus library reads an
//! older log, and replicas of two versions understand each other.

use prost::Message;

use super::types::{Entry, Membership, Proposal, log_id};
use crate::log::Position;

#[derive(Clone, PartialEq, prost::Message)]
struct WireEntry {
    #[prost(oneof = "Payload", tags = "1, 2, 3")]
    payload: Option<Payload>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Payload {
    /// A new leader's first entry.
    #[prost(bool, tag = "1")]
    Blank(bool),
    #[prost(message, tag = "2")]
    Commands(Commands),
    /// JSON of the members.
    #[prost(bytes, tag = "3")]
    Membership(Vec<u8>),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Commands {
    #[prost(bytes = "vec", repeated, tag = "1")]
    commands: Vec<Vec<u8>>,
}

/// An entry that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    /// Not of the layout.
    #[error("entry cannot be decoded: {0}")]
    Layout(#[from] prost::DecodeError),
    /// Members that cannot be read.
    #[error("members cannot be decoded: {0}")]
    Members(#[from] serde_json::Error),
    /// A kind of entry that this version does not know.
    #[error("entry of an unknown kind; upgrade this replica")]
    UnknownKind,
}

pub(crate) fn position(entry: &Entry) -> Position {
    Position { term: entry.log_id.leader_id.term, index: entry.log_id.index }
}

pub(crate) fn encode(entry: &Entry) -> Result<Vec<u8>, CodecError> {
    let payload = match &entry.payload {
        openraft::EntryPayload::Blank => Payload::Blank(true),
        openraft::EntryPayload::Normal(proposal) => {
            Payload::Commands(Commands { commands: proposal.commands.clone() })
        }
        openraft::EntryPayload::Membership(members) => {
            Payload::Membership(serde_json::to_vec(members)?)
        }
    };
    Ok(WireEntry { payload: Some(payload) }.encode_to_vec())
}

pub(crate) fn decode(at: Position, bytes: &[u8]) -> Result<Entry, CodecError> {
    let payload = match WireEntry::decode(bytes)?.payload.ok_or(CodecError::UnknownKind)? {
        Payload::Blank(_) => openraft::EntryPayload::Blank,
        Payload::Commands(Commands { commands }) => {
            openraft::EntryPayload::Normal(Proposal { commands })
        }
        Payload::Membership(json) => {
            openraft::EntryPayload::Membership(serde_json::from_slice::<Membership>(&json)?)
        }
    };
    Ok(Entry { log_id: log_id(at.term, at.index), payload })
}
