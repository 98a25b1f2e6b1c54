use std::pin::Pin;

use bigfleet_net::{identity::Identity, peer::Gate, rule::Rule};
use bigfleet_wire::v1alpha1::{
    Acknowledgement, OperatorMessage, ShardMessage, operator_message::Payload as Up,
    shard_message::Payload as Down, shard_server,
};
use tokio::sync::{mpsc, watch};
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use super::{Acks, Heard, down};

pub(super) struct Service {
    heard: watch::Sender<Heard>,
    gate: Gate,
}

impl Service {
    pub(super) fn new(heard: watch::Sender<Heard>) -> Self {
        Self { heard, gate: Gate::default() }
    }
}

#[tonic::async_trait]
impl shard_server::Shard for Service {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<ShardMessage, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<OperatorMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (metadata, extensions, mut frames) = request.into_parts();
        let first = frames.message().await?.and_then(|frame| frame.payload);
        let Some(Up::Hello(hello)) =
            first.filter(|first| matches!(first, Up::Hello(hello) if !hello.cluster_id.is_empty()))
        else {
            return Err(Status::invalid_argument("the first frame is no Hello"));
        };
        let gated = Request::from_parts(metadata, extensions, ());
        let cluster = Identity::Cluster(hello.cluster_id.clone());
        self.gate.admit(&gated, &Rule::exactly(cluster))?;

        // One frame waits beside those of the transport, so that a stall is felt.
        let (outbox, outgoing) = mpsc::channel(1);
        // Before anybody can send, for it is the first frame; the queue is empty.
        let _ = outbox.try_send(Ok(down(Down::Ack(hello_ack()))));
        let weak = outbox.downgrade();
        let mut session = 0;
        self.heard.send_modify(|heard| {
            heard.sessions += 1;
            session = heard.sessions;
            heard.outboxes.insert(session, outbox);
            heard.frames.push((session, Up::Hello(hello)));
        });
        let heard = self.heard.clone();
        tokio::spawn(async move {
            let end = read(&heard, session, &mut frames, &weak).await;
            heard.send_modify(|heard| {
                heard.outboxes.remove(&session);
                heard.ends.insert(session, end);
            });
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(outgoing))))
    }
}

fn hello_ack() -> Acknowledgement {
    Acknowledgement { echo: "hello".to_owned(), ..Default::default() }
}

async fn read(
    heard: &watch::Sender<Heard>,
    session: usize,
    frames: &mut Streaming<OperatorMessage>,
    outbox: &mpsc::WeakSender<Result<ShardMessage, Status>>,
) -> Result<(), Status> {
    let mut roll_ups = 0;
    let mut listening = heard.subscribe();
    loop {
        // The sender is at hand.
        let _ = listening.wait_for(|heard| !heard.deaf).await;
        let Some(frame) = frames.next().await else { return Ok(()) };
        let Some(payload) = frame?.payload else {
            heard.send_modify(|heard| heard.empty_frames += 1);
            continue;
        };
        let acks = heard.borrow().acks;
        let ack = match &payload {
            Up::Hello(_) => Some(hello_ack()),
            Up::Rollup(roll_up) => {
                let echo = match acks {
                    Acks::Reject => "rollup_rejected: needs[0]: no",
                    _ => "rollup",
                };
                roll_ups += 1;
                let silent = acks == Acks::None || (acks == Acks::EverySecond && roll_ups % 2 == 1);
                (!silent).then(|| Acknowledgement {
                    echo: echo.to_owned(),
                    rollup_timestamp_unix_nanos: roll_up.timestamp_unix_nanos,
                    held: acks == Acks::Hold,
                    ..Default::default()
                })
            }
            _ => None,
        };
        heard.send_if_modified(|heard| {
            if !heard.forgetful {
                heard.frames.push((session, payload));
            }
            !heard.forgetful
        });
        if let (Some(ack), Some(outbox)) = (ack, outbox.upgrade()) {
            let _ = outbox.send(Ok(down(Down::Ack(ack)))).await;
        }
    }
}
