//! Dialling members.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use bigfleet_net::{grpc, message_limits, rule::Rule, tls::Security};
use tonic::transport::Channel;

use super::{
    super::{
        message::{Answer, CallError, Envelope, Request, Response, Transport},
        types::Member,
    },
    envelope, proto,
};

/// Speaks to members over gRPC. Two connections per address, made again when they
/// are lost; its name is resolved at each dial, so a replica whose address
/// changed is found as soon as its name says so.
pub struct GrpcTransport {
    security: Security,
    channels: Mutex<BTreeMap<Place, Line>>,
}

/// An address, and whether for pulses: they do not wait behind a long message.
type Place = (String, bool);

struct Line {
    channel: Channel,
    /// Calls in a row that their callers gave up.
    abandoned: u32,
}

/// So many and the connection is taken for dead: behind it may be an address
/// that nobody has any more, which keepalives notice only after half a minute.
const ABANDONED: u32 = 5;

impl GrpcTransport {
    /// With the certificate of this process.
    #[must_use]
    pub fn new(security: Security) -> Self {
        Self { security, channels: Mutex::default() }
    }

    fn channel(&self, place: &Place) -> Result<Channel, CallError> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = channels.get(place) {
            return Ok(line.channel.clone());
        }
        let dialled = grpc::connect_lazy(&place.0, &self.security, Rule::coordinators());
        let channel = dialled.map_err(|error| CallError::Unreachable(error.to_string()))?;
        let line = Line { channel: channel.clone(), abandoned: 0 };
        channels.insert(place.clone(), line);
        Ok(channel)
    }

    fn answered(&self, place: &Place, answered: bool) {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = channels.get_mut(place) else { return };
        line.abandoned = if answered { 0 } else { line.abandoned + 1 };
        if line.abandoned >= ABANDONED {
            // The other leads to the same place, and its calls are given up more slowly.
            channels.retain(|(address, _), _| *address != place.0);
        }
    }
}

/// A call under way. Dropped before its answer, it was given up.
struct Call<'a> {
    transport: &'a GrpcTransport,
    place: &'a Place,
    answered: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.transport.answered(self.place, self.answered);
    }
}

impl Transport for GrpcTransport {
    fn call<'a>(
        &'a self,
        to: &'a Member,
        envelope: Envelope,
    ) -> Answer<'a, Result<Response, CallError>> {
        Box::pin(async move {
            let pulse = matches!(envelope.request, Request::Pulse(_));
            let place = (to.raft_address.clone(), pulse);
            let channel = self.channel(&place)?;
            let refused = |error: envelope::BadMessage| CallError::Refused(error.to_string());
            let call = envelope::write(envelope).map_err(refused)?;
            let kind = call.kind;
            let client = proto::consensus_client::ConsensusClient::new(channel);
            let mut under_way = Call { transport: self, place: &place, answered: false };
            let answer = message_limits!(client).call(call).await;
            under_way.answered = true;
            let answer = answer.map_err(|status| match status.code() {
                tonic::Code::FailedPrecondition | tonic::Code::PermissionDenied => {
                    CallError::Refused(status.message().to_owned())
                }
                _ => CallError::Unreachable(status.message().to_owned()),
            })?;
            envelope::read_answer(kind, answer.get_ref()).map_err(refused)
        })
    }
}
