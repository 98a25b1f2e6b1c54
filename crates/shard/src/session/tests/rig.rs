//! A server with a shard behind it that only writes down what it is told, and
//! operators that speak to it over the network.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bigfleet_model::ClusterId;
use bigfleet_net::{
    grpc::{GrpcServer, connect},
    message_limits,
    readiness::Readiness,
    rule::Rule,
    shutdown::Shutdown,
    tls::{Security, Tls},
};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{
    self as wire, Hello, OperatorMessage, ShardMessage, operator_message as up,
    shard_client::ShardClient, shard_message as down,
};
use futures_util::future::BoxFuture;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use crate::session::{Host, RollUpAnswer, SessionOptions, SessionServer, Sessions};

/// Nothing here takes that long; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("did not happen in time")
}

/// Returns when the condition holds.
pub(super) async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

pub(super) fn mtls(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}

/// What the mock shard does with roll-ups.
type Decide = dyn Fn(&wire::ClusterCapacityNeeds) -> RollUpAnswer + Send + Sync;

pub(super) struct MockHost {
    sessions: Sessions,
    pub(super) decide: Mutex<Arc<Decide>>,
    /// Roll-ups that reached the step which replaces rows.
    pub(super) applied: Mutex<Vec<(ClusterId, i64)>>,
    pub(super) entered: AtomicUsize,
    /// Roll-ups that are through.
    pub(super) left: AtomicUsize,
    /// Permits for roll-ups to go on.
    pub(super) gate: watch::Sender<bool>,
    /// Frames that each replay puts, once it may.
    pub(super) replayed: Mutex<Vec<String>>,
    pub(super) reconciled: watch::Sender<bool>,
    /// One clone per replay under way.
    pub(super) replaying: Arc<()>,
    pub(super) changed: Mutex<Vec<ClusterId>>,
}

impl Host for MockHost {
    fn epoch(&self) -> i64 {
        7
    }

    fn coordinator_term(&self) -> i64 {
        3
    }

    fn roll_up(
        &self,
        cluster: &ClusterId,
        message: wire::ClusterCapacityNeeds,
        still_current: &dyn Fn() -> bool,
    ) -> RollUpAnswer {
        self.entered.fetch_add(1, Ordering::SeqCst);
        // Blocks the worker's thread, as a large roll-up does.
        while !*self.gate.borrow() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let decide = self.decide.lock().unwrap().clone();
        let answer = if still_current() {
            self.applied.lock().unwrap().push((cluster.clone(), message.timestamp_unix_nanos));
            decide(&message)
        } else {
            RollUpAnswer::Dropped
        };
        self.left.fetch_add(1, Ordering::SeqCst);
        answer
    }

    fn replay(&self, cluster: ClusterId) -> BoxFuture<'static, ()> {
        let (sessions, keys) = (self.sessions.clone(), self.replayed.lock().unwrap().clone());
        let (mut reconciled, under_way) = (self.reconciled.subscribe(), self.replaying.clone());
        Box::pin(async move {
            let _under_way = under_way;
            reconciled.wait_for(|reconciled| *reconciled).await.unwrap();
            for key in keys {
                sessions.put_state(&cluster, key.clone(), node(&key, "replayed"));
            }
        })
    }

    fn resynced(&self, _: &ClusterId) {}

    fn session_changed(&self, cluster: &ClusterId) {
        self.changed.lock().unwrap().push(cluster.clone());
    }
}

pub(super) struct Rig {
    pub(super) addr: SocketAddr,
    pub(super) sessions: Sessions,
    pub(super) host: Arc<MockHost>,
    pub(super) options: SessionOptions,
    /// Ends sessions only.
    pub(super) stop: CancellationToken,
    /// Ends the whole server.
    pub(super) shutdown: Shutdown,
}

impl Rig {
    pub(super) async fn start() -> Self {
        Self::start_with(Security::Plaintext, SessionOptions::default()).await
    }

    pub(super) async fn start_with(security: Security, options: SessionOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let sessions = Sessions::new(options.clone());
        let host = Arc::new(MockHost {
            sessions: sessions.clone(),
            decide: Mutex::new(Arc::new(|_| RollUpAnswer::Accepted)),
            applied: Mutex::default(),
            entered: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            gate: watch::Sender::new(true),
            replayed: Mutex::default(),
            reconciled: watch::Sender::new(true),
            replaying: Arc::default(),
            changed: Mutex::default(),
        });
        let (stop, shutdown) = (CancellationToken::new(), Shutdown::new());
        let service = SessionServer::new(sessions.clone(), host.clone(), stop.clone());
        let server = GrpcServer::new(security, Readiness::new("starting"))
            .add_service(service.into_service());
        tokio::spawn(server.serve(listener, shutdown.clone()));
        Self { addr, sessions, host, options, stop, shutdown }
    }

    /// A stream without a word said.
    pub(super) async fn dial(&self, security: &Security) -> Operator {
        let target = self.addr.to_string();
        let channel = soon(connect(&target, security, Rule::any_certificate())).await.unwrap();
        let mut client = message_limits!(ShardClient::new(channel));
        let (up, frames) = mpsc::channel(64);
        let down = soon(client.session(ReceiverStream::new(frames))).await.unwrap().into_inner();
        Operator { up: Some(up), down }
    }

    /// A stream on which Hello was said and acked, and the replay is through.
    pub(super) async fn connect(&self, cluster: &str) -> Operator {
        let mut operator = self.hello(cluster).await;
        assert_eq!(operator.next().await.echo(), "resync");
        operator
    }

    /// A stream on which Hello was said and acked.
    pub(super) async fn hello(&self, cluster: &str) -> Operator {
        let mut operator = self.dial(&Security::Plaintext).await;
        operator.say_hello(cluster).await;
        assert_eq!(operator.next().await.echo(), "hello");
        operator
    }

    pub(super) fn hold_roll_ups(&self) {
        self.host.gate.send_replace(false);
    }

    /// Returns when the one that was held is through.
    pub(super) async fn let_roll_ups_go(&self) {
        let before = self.host.left.load(Ordering::SeqCst);
        self.host.gate.send_replace(true);
        until("a held roll-up is through", || self.host.left.load(Ordering::SeqCst) > before).await;
    }

    pub(super) fn entered(&self) -> usize {
        self.host.entered.load(Ordering::SeqCst)
    }

    pub(super) fn applied(&self) -> Vec<i64> {
        self.host.applied.lock().unwrap().iter().map(|(_, timestamp)| *timestamp).collect()
    }
}

/// The far end of a session.
pub(super) struct Operator {
    up: Option<mpsc::Sender<OperatorMessage>>,
    pub(super) down: Streaming<ShardMessage>,
}

impl Operator {
    pub(super) async fn send(&self, payload: impl Into<Option<up::Payload>>) {
        let message = OperatorMessage { payload: payload.into() };
        // A stream that the server has ended takes nothing more.
        let _ = soon(self.up.as_ref().unwrap().send(message)).await;
    }

    pub(super) async fn say_hello(&self, cluster: &str) {
        self.send(up::Payload::Hello(Hello { cluster_id: cluster.into(), ..Default::default() }))
            .await;
    }

    pub(super) async fn roll_up(&self, timestamp_unix_nanos: i64) {
        let roll_up = wire::ClusterCapacityNeeds { timestamp_unix_nanos, ..Default::default() };
        self.send(up::Payload::Rollup(roll_up)).await;
    }

    /// Large enough to get a thread of its own, which the mock may block.
    pub(super) async fn large_roll_up(&self, timestamp_unix_nanos: i64) {
        let needs = vec![wire::CapacityNeed::default(); 600];
        let roll_up =
            wire::ClusterCapacityNeeds { timestamp_unix_nanos, needs, ..Default::default() };
        self.send(up::Payload::Rollup(roll_up)).await;
    }

    pub(super) async fn ack(&self, instruction_id: &str, nodes_started: i32, finished: bool) {
        let ack = wire::ReclaimAck {
            instruction_id: instruction_id.to_owned(),
            nodes_started,
            finished,
            ..Default::default()
        };
        self.send(up::Payload::ReclaimAck(ack)).await;
    }

    pub(super) fn half_close(&mut self) {
        self.up = None;
    }

    pub(super) async fn next(&mut self) -> Frame {
        let message = soon(self.down.message()).await.unwrap().expect("the stream ended");
        Frame(message.payload.unwrap())
    }

    /// How the stream ends, whatever came before.
    pub(super) async fn end(&mut self) -> Status {
        soon(async {
            loop {
                match self.down.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return Status::ok(""),
                    Err(status) => return status,
                }
            }
        })
        .await
    }

    pub(super) async fn ends_with(&mut self, code: Code) {
        let status = self.end().await;
        assert_eq!(status.code(), code, "{status}");
    }
}

pub(super) struct Frame(pub(super) down::Payload);

impl Frame {
    pub(super) fn ack(self) -> wire::Acknowledgement {
        match self.0 {
            down::Payload::Ack(ack) => ack,
            other => panic!("not an ack: {other:?}"),
        }
    }

    pub(super) fn echo(self) -> String {
        self.ack().echo
    }

    pub(super) fn blob_request(self) -> wire::BootstrapRequest {
        match self.0 {
            down::Payload::BootstrapRequest(request) => request,
            other => panic!("not a blob request: {other:?}"),
        }
    }

    pub(super) fn instruction(self) -> wire::ReclaimInstruction {
        match self.0 {
            down::Payload::ReclaimInstruction(instruction) => instruction,
            other => panic!("not an instruction: {other:?}"),
        }
    }

    pub(super) fn node(self) -> wire::NodeStateUpdate {
        match self.0 {
            down::Payload::NodeStateUpdate(update) => update,
            other => panic!("not a node: {other:?}"),
        }
    }
}

pub(super) fn node(key: &str, name: &str) -> ShardMessage {
    let update = wire::NodeStateUpdate {
        supersedes_key: key.to_owned(),
        node_name: name.to_owned(),
        ..Default::default()
    };
    ShardMessage { payload: Some(down::Payload::NodeStateUpdate(update)) }
}
