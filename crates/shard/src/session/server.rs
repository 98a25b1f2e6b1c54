//! The service: from the first frame of a stream to its last.

use std::{
    mem,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bigfleet_net::{
    identity::Identity,
    message_limits,
    peer::{Gate, Peer},
    rule::Rule,
    values,
};
use bigfleet_wire::v1alpha1::{
    Hello, OperatorMessage,
    operator_message::Payload,
    shard_server::{Shard, ShardServer},
};
use tokio::{sync::Semaphore, task::consume_budget, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::{
    ack::Acks,
    cut,
    features::{self, Features, MAX_NAME},
    host::Host,
    link::{Opening, Session},
    outbox::{Frames, Outbox},
    registry::Sessions,
    rollups,
};

/// Serves `Shard.Session`.
pub(crate) struct SessionServer<H> {
    shared: Arc<Shared<H>>,
}

struct Shared<H> {
    sessions: Sessions,
    host: Arc<H>,
    /// For large roll-ups.
    threads: Arc<Semaphore>,
    gate: Gate,
    shutdown: CancellationToken,
}

impl<H: Host> SessionServer<H> {
    /// Ends every session with `UNAVAILABLE` once `shutdown` is cancelled.
    pub(crate) fn new(sessions: Sessions, host: Arc<H>, shutdown: CancellationToken) -> Self {
        let gate = Gate::new(sessions.options().identity_rejected.clone());
        let threads = rollups::threads();
        Self { shared: Arc::new(Shared { sessions, host, threads, gate, shutdown }) }
    }

    /// For [`GrpcServer::add_service`](bigfleet_net::grpc::GrpcServer::add_service).
    pub(crate) fn into_service(self) -> ShardServer<Self> {
        message_limits!(ShardServer::new(self))
    }
}

#[tonic::async_trait]
impl<H: Host> Shard for SessionServer<H> {
    type SessionStream = Frames;

    /// Answers at once, so that an operator may wait for the response before it
    /// says Hello; whatever is wrong then ends the stream.
    async fn session(
        &self,
        request: Request<Streaming<OperatorMessage>>,
    ) -> Result<Response<Frames>, Status> {
        self.shared.gate.admit(&request, &Rule::any_certificate())?;
        let peer = Peer::of(&request).cloned().ok_or_else(|| Status::internal("no peer"))?;
        let outbox = Outbox::new();
        let frames = outbox.frames();
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let status = shared.converse(&peer, request.into_inner(), &outbox).await;
            outbox.close(status.err());
        });
        Ok(Response::new(frames))
    }
}

impl<H: Host> Shared<H> {
    async fn converse(
        &self,
        peer: &Peer,
        mut inbound: Streaming<OperatorMessage>,
        outbox: &Arc<Outbox>,
    ) -> Result<(), Status> {
        let hello = tokio::select! {
            biased;
            () = self.closing(peer) => return Err(closing()),
            () = outbox.closed() => return Ok(()),
            hello = timeout(self.sessions.options().hello_limit, first(&mut inbound)) => {
                hello.unwrap_or_else(|_| Err(Status::deadline_exceeded(
                    "no Hello came; send it as the first frame",
                )))?
            }
        };
        let cluster = Identity::Cluster(hello.cluster_id.clone());
        self.gate.admit_peer(peer, &Rule::exactly(cluster))?;
        let session = Session::new(opening(hello, peer), outbox.clone());
        // Once installed, anybody may send; the first frame is the answer to Hello.
        session.control(Acks::of(&*self.host).hello());
        let installed = self.install(&session);
        self.replay(&session);
        let ended = self.listen(peer, &mut inbound, &session).await;
        session.end(ended.clone().err());
        drop(installed);
        ended
    }

    /// Reads until the stream is over. Routes only: whatever takes time is done
    /// elsewhere.
    async fn listen(
        &self,
        peer: &Peer,
        inbound: &mut Streaming<OperatorMessage>,
        session: &Arc<Session>,
    ) -> Result<(), Status> {
        let outbox = session.outbox();
        let over = async {
            tokio::select! {
                biased;
                () = outbox.closed() => Ok(()),
                () = self.closing(peer) => Err(closing()),
                () = outbox.stalled(self.sessions.options().write_limit) => {
                    tracing::warn!(
                        cluster = %session.cluster(), peer = %peer.addr(),
                        "session ended: its operator does not read"
                    );
                    Err(Status::deadline_exceeded("frames were not read in time; connect again"))
                }
            }
        };
        tokio::pin!(over);
        let mut unknown = false;
        loop {
            let frame = tokio::select! {
                biased;
                ended = &mut over => return ended,
                frame = inbound.message() => frame?,
            };
            let Some(frame) = frame else {
                return Ok(());
            };
            // A peer must not fill our log: once is enough to see that it is newer.
            if frame.payload.is_none() && !mem::replace(&mut unknown, true) {
                tracing::warn!(cluster = %session.cluster(), "unknown payload ignored");
            }
            self.route(session, frame)?;
            // Nor keep our thread with what its window holds.
            consume_budget().await;
        }
    }

    fn route(&self, session: &Arc<Session>, frame: OperatorMessage) -> Result<(), Status> {
        match frame.payload {
            Some(Payload::Rollup(roll_up)) => {
                rollups::submit(&self.host, &self.threads, session, roll_up);
            }
            Some(Payload::BootstrapResponse(response)) => session.answer_blob(response),
            Some(Payload::ReclaimAck(ack)) => self.sessions.reclaim_ack(session, &ack),
            Some(Payload::Hello(hello)) if hello.cluster_id == session.cluster().as_str() => {
                session.control(Acks::of(&*self.host).hello());
            }
            Some(Payload::Hello(_)) => {
                return Err(Status::invalid_argument(
                    "cluster_id: differs from the first Hello; open a stream per cluster",
                ));
            }
            None => {}
        }
        Ok(())
    }

    fn install(&self, session: &Arc<Session>) -> Installed<'_, H> {
        let opening = &session.opening;
        self.sessions.install(session.clone());
        tracing::info!(
            cluster = %opening.cluster, peer = %opening.peer,
            protocol_version = opening.protocol_version, features = ?opening.feature_names,
            "session installed"
        );
        self.host.session_changed(&opening.cluster);
        Installed { shared: self, session: session.clone() }
    }

    /// Queues everything the operator has to know, and behind it the marker.
    fn replay(&self, session: &Arc<Session>) {
        let (host, session) = (self.host.clone(), session.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = session.outbox().closed() => {}
                () = host.replay(session.cluster().clone()) => {
                    session.outbox().push_marker(Acks::of(&*host).resync());
                    session.set_resynced();
                    host.resynced(session.cluster());
                }
            }
        });
    }

    /// Returns when the server or this connection is about to close.
    async fn closing(&self, peer: &Peer) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = peer.closing().cancelled() => {}
        }
    }
}

fn closing() -> Status {
    Status::unavailable("this connection is closing; connect again")
}

/// The first frame must be a Hello of somebody.
async fn first(inbound: &mut Streaming<OperatorMessage>) -> Result<Hello, Status> {
    let frame = inbound.message().await.map_err(|error| {
        Status::invalid_argument(format!("the first frame cannot be read: {}", error.message()))
    })?;
    match frame.and_then(|frame| frame.payload) {
        // A coordinator would refuse every report that names another (its chapter §3), and
        // without mTLS anybody may say one.
        Some(Payload::Hello(hello)) => {
            match values::id(&hello.cluster_id, "cluster", "prod-eu-1") {
                Ok(_) => Ok(hello),
                Err(why) => Err(Status::invalid_argument(format!("cluster_id: {why}"))),
            }
        }
        _ => Err(Status::invalid_argument("the first frame must be Hello")),
    }
}

fn opening(hello: Hello, peer: &Peer) -> Opening {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Opening {
        cluster: hello.cluster_id.into(),
        peer: peer.addr(),
        since_unix_nanos: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
        protocol_version: cut(hello.protocol_version, MAX_NAME),
        features: Features::of(&hello.features),
        feature_names: features::kept(hello.features),
    }
}

/// Cleans up after a session, however its task ends.
struct Installed<'a, H: Host> {
    shared: &'a Shared<H>,
    session: Arc<Session>,
}

impl<H: Host> Drop for Installed<'_, H> {
    fn drop(&mut self) {
        let session = &self.session;
        // Nothing to say twice: the first end counts.
        session.end(Some(Status::internal("the session broke; connect again")));
        if self.shared.sessions.remove(session) {
            tracing::info!(cluster = %session.cluster(), "session removed");
            self.shared.host.session_changed(session.cluster());
        }
    }
}
