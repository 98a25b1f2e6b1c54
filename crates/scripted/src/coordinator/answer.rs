//! What a coordinator says to a report.

use std::time::Duration;

use bigfleet_net::leader::{LEADER_ADDR, LEADER_ID};
use bigfleet_wire::v1alpha1::ReportAck;
use tonic::{Code, Status, metadata::MetadataValue};

/// One answer.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Acknowledged, with the term, the fleet and the pending instructions of
    /// the script.
    Report,
    /// Just this.
    Ack(Box<ReportAck>),
    /// This error.
    Refuse(Code, String),
    /// From a replica that does not lead.
    NotLeader {
        /// Node id and address of who does, if it is known.
        leader: Option<(String, String)>,
    },
    /// No answer as long as the caller waits.
    Never,
    /// Another answer, this late.
    Late(Duration, Box<Self>),
}

/// FAILED_PRECONDITION with the leader in its trailers.
pub(super) fn not_leader(leader: Option<&(String, String)>) -> Status {
    let mut status = Status::failed_precondition("coordinator: not leader");
    let hint = leader.iter().flat_map(|(id, addr)| [(LEADER_ID, id), (LEADER_ADDR, addr)]);
    for (trailer, value) in hint {
        // What no header can carry is left out, as the real one must.
        if let Ok(value) = MetadataValue::try_from(value.as_str()) {
            status.metadata_mut().insert(trailer, value);
        }
    }
    status
}
