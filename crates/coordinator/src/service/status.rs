//! From refusals to gRPC codes (wire chapter §6).

use tonic::{Code, Status, metadata::MetadataMap};

use super::replica::{LeaderHint, ReplicaError};
use crate::{
    reports::{Rejected, limits::Invalid},
    state::Refused,
};

/// Trailers that tell where the leader is.
const LEADER_ID: &str = "bigfleet-leader-id";
const LEADER_ADDR: &str = "bigfleet-leader-addr";

/// Every replica that does not lead says this, and who does if it may.
pub(super) fn not_leader(hint: Option<&LeaderHint>) -> Status {
    let mut trailers = MetadataMap::new();
    if let Some(hint) = hint {
        for (name, text) in [(LEADER_ID, &hint.node_id), (LEADER_ADDR, &hint.grpc_address)] {
            // A name that cannot be written is left out: the client asks them all then.
            if let Ok(value) = text.parse() {
                trailers.insert(name, value);
            }
        }
    }
    Status::with_metadata(Code::FailedPrecondition, "coordinator: not leader", trailers)
}

impl From<Invalid> for Status {
    fn from(invalid: Invalid) -> Self {
        Self::invalid_argument(invalid.to_string())
    }
}

impl From<ReplicaError> for Status {
    fn from(error: ReplicaError) -> Self {
        match error {
            ReplicaError::NotLeader(hint) => not_leader(hint.as_ref()),
            ReplicaError::Unavailable(why) => Self::unavailable(why),
            ReplicaError::NotFound(what) => Self::not_found(what),
            ReplicaError::Refused(why) => Self::aborted(why),
        }
    }
}

impl From<Rejected> for Status {
    fn from(rejected: Rejected) -> Self {
        Self::aborted(rejected.to_string())
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let code = match &refused {
            Refused::ShardNotFound(_) => Code::NotFound,
            Refused::ShardExists(_)
            | Refused::ClusterAlreadyBound { .. }
            | Refused::DomainAlreadyAssigned { .. } => Code::AlreadyExists,
            Refused::EmptyShardId
            | Refused::EmptyProviderName
            | Refused::EmptyFleetId
            | Refused::NegativeSlice { .. }
            | Refused::BatchTooLarge(_)
            | Refused::NestedBatch
            | Refused::SameShard(_)
            | Refused::NotShared(_)
            | Refused::TooManyMachines(_) => Code::InvalidArgument,
            Refused::Recovering
            | Refused::NotRecovering
            | Refused::HoldingsMissing(_)
            | Refused::KeyOnLoan(_) => Code::FailedPrecondition,
            Refused::StaleEpoch { .. } | Refused::OtherFleet(_) | Refused::ReplicaTooOld { .. } => {
                Code::Aborted
            }
        };
        Self::new(code, refused.to_string())
    }
}
