//! The other end of a session: takes everything down, acks Hellos and roll-ups,
//! sends what a test tells it to.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use bigfleet_net::{
    grpc::{ConnectionLimits, GrpcServer},
    identity::Identity,
    message_limits,
    peer::Gate,
    readiness::Readiness,
    rule::Rule,
    shutdown::Shutdown,
    tls::{Security, Tls},
};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{
    Acknowledgement, MachineState, NodeStateUpdate, OperatorMessage, Resources, ShardMessage,
    operator_message::Payload as Up,
    shard_message::Payload as Down,
    shard_server::{Shard, ShardServer},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

/// Nothing here takes that long; a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How roll-ups are acked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Acks {
    #[default]
    Accept,
    Hold,
    Reject,
    /// As a shard does that is slower than its operator.
    EverySecond,
    None,
}

#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Every frame, with the number of its session.
    pub(crate) frames: Vec<(usize, Up)>,
    pub(crate) empty_frames: usize,
    /// How the operator's half of each session ended.
    pub(crate) ends: BTreeMap<usize, Result<(), Status>>,
    pub(crate) acks: Acks,
    /// Takes no frames down.
    pub(crate) forgetful: bool,
    /// Writers of the sessions; dropping one ends its session with OK.
    outboxes: BTreeMap<usize, mpsc::Sender<Result<ShardMessage, Status>>>,
    sessions: usize,
}

impl Heard {
    pub(crate) fn reclaim_acks(&self) -> Vec<(usize, i32, i32, bool)> {
        let acks = self.frames.iter().filter_map(|(session, frame)| match frame {
            Up::ReclaimAck(ack) => {
                Some((*session, ack.nodes_started, ack.nodes_drained, ack.finished))
            }
            _ => None,
        });
        acks.collect()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct FakeShard {
    pub(crate) addr: String,
    pub(crate) heard: watch::Sender<Heard>,
    _served: Arc<Served>,
}

#[derive(Debug)]
struct Served(JoinHandle<()>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) fn mtls(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}

pub(crate) fn down(payload: Down) -> ShardMessage {
    ShardMessage { payload: Some(payload) }
}

pub(crate) fn node(id: &str, state: MachineState) -> NodeStateUpdate {
    let resources = [("cpu", "4"), ("memory", "16Gi")];
    let resources = resources.map(|(name, text)| (name.to_owned(), text.to_owned()));
    NodeStateUpdate {
        supersedes_key: format!("node:{id}"),
        machine_id: id.to_owned(),
        cluster_id: "c".to_owned(),
        state: state.into(),
        resources: Some(Resources { resources: resources.into() }),
        ..Default::default()
    }
}

impl FakeShard {
    pub(crate) async fn start() -> Self {
        Self::start_with(Security::Plaintext).await
    }

    pub(crate) async fn start_with(security: Security) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let heard = watch::Sender::new(Heard::default());
        let service = Service { heard: heard.clone(), gate: Gate::default() };
        let limits = ConnectionLimits { drain: Duration::ZERO, ..ConnectionLimits::default() };
        let server = GrpcServer::new(security, Readiness::new("a fake"))
            .add_service(message_limits!(ShardServer::new(service)))
            .limits(limits);
        let served = tokio::spawn(async move {
            server.serve(listener, Shutdown::new()).await.unwrap();
        });
        Self { addr, heard, _served: Arc::new(Served(served)) }
    }

    /// Sends on the newest session; waits while its stream takes nothing.
    pub(crate) async fn send(&self, payload: Down) {
        let outbox = self.heard.borrow().outboxes.values().next_back().unwrap().clone();
        outbox.send(Ok(down(payload))).await.unwrap();
    }

    /// Whether the newest session's stream takes one more frame now.
    pub(crate) fn try_send(&self, payload: Down) -> bool {
        let outbox = self.heard.borrow().outboxes.values().next_back().unwrap().clone();
        outbox.try_send(Ok(down(payload))).is_ok()
    }

    pub(crate) async fn end_with(&self, status: Status) {
        let mut newest = None;
        self.heard.send_modify(|heard| newest = heard.outboxes.pop_last());
        newest.unwrap().1.send(Err(status)).await.unwrap();
    }

    pub(crate) async fn machine(&self, id: &str, state: MachineState) {
        self.send(Down::NodeStateUpdate(node(id, state))).await;
    }

    pub(crate) async fn ack(&self, echo: &str) {
        let ack = Acknowledgement { echo: echo.to_owned(), ..Default::default() };
        self.send(Down::Ack(ack)).await;
    }

    pub(crate) async fn until(&self, condition: impl FnMut(&Heard) -> bool) {
        let mut heard = self.heard.subscribe();
        let waited = timeout(PATIENCE, heard.wait_for(condition)).await.map(drop);
        assert!(waited.is_ok(), "not heard in time: {:?}", self.heard.borrow());
    }

    /// Waits for the first frame that the look finds something in.
    pub(crate) async fn find<T>(&self, look: impl Fn(&Up) -> Option<T>) -> T {
        let found = |heard: &Heard| heard.frames.iter().find_map(|(_, frame)| look(frame));
        self.until(|heard| found(heard).is_some()).await;
        found(&self.heard.borrow()).unwrap()
    }
}

struct Service {
    heard: watch::Sender<Heard>,
    gate: Gate,
}

#[tonic::async_trait]
impl Shard for Service {
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
        // Before anybody can send, for it is the first frame.
        let hello_ack = Acknowledgement { echo: "hello".to_owned(), ..Default::default() };
        outbox.try_send(Ok(down(Down::Ack(hello_ack)))).unwrap();
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

async fn read(
    heard: &watch::Sender<Heard>,
    session: usize,
    frames: &mut Streaming<OperatorMessage>,
    outbox: &mpsc::WeakSender<Result<ShardMessage, Status>>,
) -> Result<(), Status> {
    let mut roll_ups = 0;
    while let Some(frame) = frames.next().await {
        let Some(payload) = frame?.payload else {
            heard.send_modify(|heard| heard.empty_frames += 1);
            continue;
        };
        let acks = heard.borrow().acks;
        let ack = match &payload {
            Up::Hello(_) => {
                Some(Acknowledgement { echo: "hello".to_owned(), ..Default::default() })
            }
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
    Ok(())
}
