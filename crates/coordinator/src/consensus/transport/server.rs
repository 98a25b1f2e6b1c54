//! Answering members.

use bigfleet_net::{message_limits, peer::Gate, rule::Rule};
use tonic::{Request, Response, Status};

use super::{
    super::{handle::Consensus, message::CallError},
    ConsensusServer, envelope, proto,
};

/// The consensus port of a replica.
pub struct ConsensusService {
    consensus: Consensus,
    gate: Gate,
}

impl ConsensusService {
    /// As it is added to a server. `gate` counts the identities it rejects.
    #[must_use]
    pub fn server(consensus: Consensus, gate: Gate) -> ConsensusServer {
        message_limits!(ConsensusServer::new(Self { consensus, gate }))
    }
}

#[tonic::async_trait]
impl proto::consensus_server::Consensus for ConsensusService {
    async fn call(
        &self,
        request: Request<proto::CallRequest>,
    ) -> Result<Response<proto::CallResponse>, Status> {
        self.gate.admit(&request, &Rule::coordinators())?;
        let bad = |error: envelope::BadMessage| Status::invalid_argument(error.to_string());
        let envelope = envelope::read(request.into_inner()).map_err(bad)?;
        match self.consensus.answer(envelope).await {
            Ok(answer) => Ok(Response::new(envelope::write_answer(&answer).map_err(bad)?)),
            Err(CallError::Refused(why)) => Err(Status::failed_precondition(why)),
            Err(CallError::Unreachable(why)) => Err(Status::unavailable(why)),
        }
    }
}
