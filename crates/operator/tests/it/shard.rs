//! The other end of a session: takes everything down, answers as a test tells it.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use bigfleet_net::{
    grpc::{ConnectionLimits, GrpcServer},
    message_limits,
    readiness::Readiness,
    shutdown::Shutdown,
    tls::Security,
};
use bigfleet_wire::v1alpha1::{
    Acknowledgement, BootstrapBlobResponse, ClusterCapacityNeeds, Hello, OperatorMessage,
    ShardMessage,
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
use tokio_stream::{Stream, StreamExt, wrappers::UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

/// Nothing here takes that long; a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How roll-ups are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    #[default]
    Accept,
    Hold,
    Reject,
    /// Not at all.
    None,
}

type Outbox = mpsc::UnboundedSender<Result<ShardMessage, Status>>;

/// What was heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) answers: Answers,
    pub(crate) sessions: usize,
    /// Open now, by number.
    pub(crate) open: BTreeMap<usize, Outbox>,
    pub(crate) hellos: Vec<Hello>,
    pub(crate) roll_ups: Vec<ClusterCapacityNeeds>,
    pub(crate) blobs: Vec<BootstrapBlobResponse>,
    pub(crate) reclaim_acks: usize,
    /// Takes no frames from the stream.
    pub(crate) stalled: bool,
}

impl Heard {
    pub(crate) fn latest(&self) -> Option<&ClusterCapacityNeeds> {
        self.roll_ups.last()
    }

    /// Total of one resource in the newest roll-up.
    pub(crate) fn wanted(&self, name: &str) -> Vec<String> {
        let needs = self.latest().map(|roll_up| roll_up.needs.as_slice()).unwrap_or_default();
        needs.iter().filter_map(|need| need.aggregate_resources.get(name).cloned()).collect()
    }
}

#[derive(Clone, Debug)]
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

impl FakeShard {
    pub(crate) async fn start(security: Security) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = format!("localhost:{}", listener.local_addr().unwrap().port());
        let heard = watch::Sender::new(Heard::default());
        let service = Service { heard: heard.clone() };
        let limits = ConnectionLimits { drain: Duration::ZERO, ..ConnectionLimits::default() };
        let server = GrpcServer::new(security, Readiness::new("a fake"))
            .add_service(message_limits!(ShardServer::new(service)))
            .limits(limits);
        let served = tokio::spawn(async move {
            server.serve(listener, Shutdown::new()).await.unwrap();
        });
        Self { addr, heard, _served: Arc::new(Served(served)) }
    }

    /// Sends on the newest session.
    pub(crate) fn send(&self, payload: Down) {
        let outbox = self.heard.borrow().open.values().next_back().unwrap().clone();
        outbox.send(Ok(ShardMessage { payload: Some(payload) })).unwrap();
    }

    pub(crate) fn answer(&self, echo: &str, timestamp: i64) {
        self.send(Down::Ack(Acknowledgement {
            echo: echo.to_owned(),
            rollup_timestamp_unix_nanos: timestamp,
            ..Default::default()
        }));
    }

    /// Ends the newest session.
    pub(crate) fn end(&self, status: Status) {
        let outbox = self.heard.borrow().open.values().next_back().unwrap().clone();
        let _ = outbox.send(Err(status));
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Heard)) {
        self.heard.send_modify(change);
    }

    pub(crate) async fn until(&self, what: &str, condition: impl FnMut(&Heard) -> bool) {
        let mut heard = self.heard.subscribe();
        let waited = timeout(PATIENCE, heard.wait_for(condition)).await.map(drop);
        let heard = self.heard.borrow();
        let (sessions, open, roll_ups) = (heard.sessions, heard.open.len(), heard.roll_ups.len());
        let latest = heard.latest().map(|one| one.needs.len());
        assert!(
            waited.is_ok(),
            "not heard in time: {what}; {sessions} sessions, {open} open, {roll_ups} roll-ups, \
             the last with {latest:?} needs"
        );
    }
}

struct Service {
    heard: watch::Sender<Heard>,
}

#[tonic::async_trait]
impl Shard for Service {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<ShardMessage, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<OperatorMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut frames = request.into_inner();
        let first = frames.message().await?.and_then(|frame| frame.payload);
        let Some(Up::Hello(hello)) = first else {
            return Err(Status::invalid_argument("the first frame is no Hello"));
        };
        let (outbox, outgoing) = mpsc::unbounded_channel();
        let mut session = 0;
        self.heard.send_modify(|heard| {
            heard.sessions += 1;
            session = heard.sessions;
            heard.hellos.push(hello);
            heard.open.insert(session, outbox.clone());
        });
        let _ = outbox.send(Ok(ack("hello", 0, false)));
        let heard = self.heard.clone();
        let weak = outbox.downgrade();
        tokio::spawn(async move {
            read(&heard, &mut frames, &weak).await;
            heard.send_modify(|heard| drop(heard.open.remove(&session)));
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(outgoing))))
    }
}

fn ack(echo: &str, timestamp: i64, held: bool) -> ShardMessage {
    let payload = Down::Ack(Acknowledgement {
        echo: echo.to_owned(),
        rollup_timestamp_unix_nanos: timestamp,
        held,
        ..Default::default()
    });
    ShardMessage { payload: Some(payload) }
}

async fn read(
    heard: &watch::Sender<Heard>,
    frames: &mut Streaming<OperatorMessage>,
    outbox: &mpsc::WeakUnboundedSender<Result<ShardMessage, Status>>,
) {
    let mut watched = heard.subscribe();
    loop {
        drop(watched.wait_for(|heard| !heard.stalled).await);
        let Some(Ok(frame)) = frames.next().await else { return };
        let answers = heard.borrow().answers;
        let answer = match &frame.payload {
            Some(Up::Hello(_)) => Some(ack("hello", 0, false)),
            Some(Up::Rollup(roll_up)) => match answers {
                Answers::Accept => Some(ack("rollup", roll_up.timestamp_unix_nanos, false)),
                Answers::Hold => Some(ack("rollup", roll_up.timestamp_unix_nanos, true)),
                Answers::Reject => {
                    let echo = "rollup_rejected: needs[0]: no";
                    Some(ack(echo, roll_up.timestamp_unix_nanos, false))
                }
                Answers::None => None,
            },
            _ => None,
        };
        heard.send_modify(|heard| match frame.payload {
            Some(Up::Hello(hello)) => heard.hellos.push(hello),
            Some(Up::Rollup(roll_up)) => heard.roll_ups.push(roll_up),
            Some(Up::BootstrapResponse(blob)) => heard.blobs.push(blob),
            Some(Up::ReclaimAck(_)) => heard.reclaim_acks += 1,
            None => {}
        });
        if let (Some(answer), Some(outbox)) = (answer, outbox.upgrade()) {
            let _ = outbox.send(Ok(answer));
        }
    }
}
