//! One stream, from dialling to its end.

use std::{pin::pin, sync::Arc};

use bigfleet_net::message_limits;
use bigfleet_wire::v1alpha1::{
    BootstrapBlobResponse, BootstrapRequest, OperatorMessage, ReclaimInstruction, ShardMessage,
    operator_message::Payload as Up, shard_client::ShardClient, shard_message::Payload,
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, WeakUnboundedSender},
    time::{Duration, sleep},
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, transport::Channel};

use super::{
    options::FINAL_RECLAIM_ACK,
    policy::{Bootstrap, Reclaim},
    shared::Shared,
};

/// What an operator does with an instruction that names no grace.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

pub(crate) fn message(payload: Up) -> OperatorMessage {
    OperatorMessage { payload: Some(payload) }
}

/// The reading half of a session, and what it needs to answer.
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) shared: Arc<Shared>,
    /// Weak: an answer that is due later must not keep a closed stream open.
    pub(super) outbox: WeakUnboundedSender<OperatorMessage>,
}

impl Session {
    /// Reads to the end of the stream.
    pub(super) async fn run(self, channel: Channel, outgoing: UnboundedReceiver<OperatorMessage>) {
        let mut client = message_limits!(ShardClient::new(channel));
        let status = match client.session(UnboundedReceiverStream::new(outgoing)).await {
            Ok(response) => self.read(response.into_inner()).await,
            Err(status) => status,
        };
        self.shared.end(self.number, status);
    }

    async fn read(&self, mut stream: tonic::Streaming<ShardMessage>) -> Status {
        let mut stalled = self.shared.stalled.subscribe();
        loop {
            // The sender lives in `shared`, so this ends only by a resume.
            let _ = stalled.wait_for(|stalled| !stalled).await;
            let frame = {
                let mut next = pin!(stream.message());
                tokio::select! {
                    biased;
                    _ = stalled.wait_for(|stalled| *stalled) => continue,
                    frame = next.as_mut() => frame,
                }
            };
            match frame {
                Ok(Some(frame)) => self.receive(frame),
                Ok(None) => return Status::ok(""),
                Err(status) => return status,
            }
        }
    }

    fn receive(&self, frame: ShardMessage) {
        let request = match &frame.payload {
            Some(Payload::BootstrapRequest(request)) => Some(Ask::Blob(request.clone())),
            Some(Payload::ReclaimInstruction(instruction)) => {
                Some(Ask::Reclaim(instruction.clone()))
            }
            _ => None,
        };
        self.shared.update(self.number, |state| state.receive(frame, self.shared.options.record));
        match request {
            Some(Ask::Blob(request)) => self.bootstrap(request),
            Some(Ask::Reclaim(instruction)) => self.reclaim(instruction),
            None => {}
        }
    }

    fn bootstrap(&self, request: BootstrapRequest) {
        let policy = self.shared.policies().bootstrap;
        let (response, late) = match policy(&request) {
            Bootstrap::Unique => (self.unique_blob(&request), None),
            Bootstrap::Late(after) => (self.unique_blob(&request), Some(after)),
            Bootstrap::Deliver { blob, ttl_seconds } => {
                (BootstrapBlobResponse { user_data: blob, ttl_seconds, ..Default::default() }, None)
            }
            Bootstrap::Refuse(error) => {
                (BootstrapBlobResponse { error, ..Default::default() }, None)
            }
            Bootstrap::Silent => return,
        };
        let response = BootstrapBlobResponse { request_id: request.request_id, ..response };
        let (outbox, response) = (self.outbox.clone(), message(Up::BootstrapResponse(response)));
        let send = move || outbox.upgrade().is_some_and(|outbox| outbox.send(response).is_ok());
        match late {
            None => drop(send()),
            Some(after) => self.shared.later(async move {
                sleep(after).await;
                send();
            }),
        }
    }

    fn unique_blob(&self, request: &BootstrapRequest) -> BootstrapBlobResponse {
        let cluster = &self.shared.options.cluster;
        let text =
            format!("join {cluster} as {} #{}", request.machine_id, self.shared.next_number());
        BootstrapBlobResponse { user_data: text.into_bytes(), ..Default::default() }
    }

    fn reclaim(&self, instruction: ReclaimInstruction) {
        let policy = self.shared.policies().reclaim;
        let (first, drain) = match policy(&instruction) {
            Reclaim::Drain(drain) => (Duration::ZERO, Some(drain)),
            Reclaim::LateFirstAck { after, drain } => (after, Some(drain)),
            Reclaim::NoFinal => (Duration::ZERO, None),
            Reclaim::Silent => return,
            Reclaim::NothingToDo => {
                let instruction_id = instruction.instruction_id;
                self.shared.acknowledge(bigfleet_wire::v1alpha1::ReclaimAck {
                    instruction_id,
                    ..Default::default()
                });
                return;
            }
        };
        let shared = self.shared.clone();
        let drain = drain.filter(|_| shared.options.has(FINAL_RECLAIM_ACK));
        let grace = u64::try_from(instruction.grace_period_seconds).unwrap_or(0);
        let grace = if grace == 0 { DEFAULT_GRACE } else { Duration::from_secs(grace) };
        // What takes no time is done in the order of the stream.
        if first.is_zero() {
            shared.cordon(&instruction);
            match drain {
                None => return,
                Some(drain) if drain.is_zero() => {
                    shared.finish(&instruction.instruction_id, true);
                    return;
                }
                Some(_) => {}
            }
        }
        let script = {
            let shared = shared.clone();
            async move {
                if !first.is_zero() {
                    sleep(first).await;
                    shared.cordon(&instruction);
                }
                let Some(drain) = drain else { return };
                sleep(drain.min(grace)).await;
                shared.finish(&instruction.instruction_id, drain <= grace);
            }
        };
        shared.later(script);
    }
}

enum Ask {
    Blob(BootstrapRequest),
    Reclaim(ReclaimInstruction),
}
