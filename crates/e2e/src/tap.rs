//! Stands between an operator and its real shard, passes every frame on as it is, and writes down
//! what a shard heard: no shard tells its roll-ups one by one.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bigfleet_net::{
    grpc::{self, GrpcServer},
    message_limits,
    readiness::Readiness,
    rule::Rule,
    tls::Security,
};
use bigfleet_scripted::served::Served;
use bigfleet_wire::v1alpha1::{
    ClusterCapacityNeeds, OperatorMessage, ShardMessage, operator_message::Payload as Up,
    shard_client::ShardClient, shard_message::Payload as Down, shard_server,
};
use tokio::time::Instant;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// A running tap. Dropping it cuts its sessions.
#[derive(Debug)]
pub struct Tap {
    passed: Arc<Mutex<Passed>>,
    served: Served,
}

/// A roll-up on its way to the shard.
#[derive(Debug, Clone)]
pub struct RollUp {
    /// The session that it came in, from 1.
    pub session: usize,
    /// When it came by.
    pub at: Instant,
    /// What it says.
    pub needs: ClusterCapacityNeeds,
}

#[derive(Debug, Default)]
struct Passed {
    sessions: usize,
    roll_ups: Vec<RollUp>,
    refusals: Vec<String>,
}

impl Tap {
    /// Listens on a free port of this machine for an operator of the shard at `shard`.
    pub async fn start(shard: &str) -> Self {
        let passed = Arc::<Mutex<Passed>>::default();
        let service = Service { shard: shard.to_owned(), passed: passed.clone() };
        let service = message_limits!(shard_server::ShardServer::new(service));
        let server = GrpcServer::new(Security::Plaintext, Readiness::new("a tap"));
        let served = Served::start(server.add_service(service)).await.unwrap();
        Self { passed, served }
    }

    /// Where operators connect.
    #[must_use]
    pub fn addr(&self) -> &str {
        self.served.addr()
    }

    /// All roll-ups so far, in order.
    #[must_use]
    pub fn roll_ups(&self) -> Vec<RollUp> {
        self.roll_ups_after(0)
    }

    /// Those after the first so many.
    #[must_use]
    pub fn roll_ups_after(&self, count: usize) -> Vec<RollUp> {
        lock(&self.passed).roll_ups.iter().skip(count).cloned().collect()
    }

    /// The newest.
    #[must_use]
    pub fn newest(&self) -> Option<RollUp> {
        lock(&self.passed).roll_ups.last().cloned()
    }

    /// What the shard said of roll-ups that it refused.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        lock(&self.passed).refusals.clone()
    }
}

fn lock(passed: &Mutex<Passed>) -> MutexGuard<'_, Passed> {
    passed.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Service {
    shard: String,
    passed: Arc<Mutex<Passed>>,
}

#[tonic::async_trait]
impl shard_server::Shard for Service {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<ShardMessage, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<OperatorMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let channel = grpc::connect(&self.shard, &Security::Plaintext, Rule::any_shard()).await;
        let channel = channel.map_err(|error| Status::unavailable(error.to_string()))?;
        let session = {
            let mut passed = lock(&self.passed);
            passed.sessions += 1;
            passed.sessions
        };
        let passed = self.passed.clone();
        // A session that breaks on this side ends on the other.
        let up = request.into_inner().map_while(Result::ok).map(move |frame| {
            if let Some(Up::Rollup(needs)) = &frame.payload {
                let (at, needs) = (Instant::now(), needs.clone());
                lock(&passed).roll_ups.push(RollUp { session, at, needs });
            }
            frame
        });
        let mut client = message_limits!(ShardClient::new(channel));
        let passed = self.passed.clone();
        let down = client.session(up).await?.into_inner().map(move |frame| {
            if let Ok(ShardMessage { payload: Some(Down::Ack(ack)) }) = &frame
                && ack.echo.starts_with("rollup_rejected")
            {
                lock(&passed).refusals.push(ack.echo.clone());
            }
            frame
        });
        Ok(Response::new(Box::pin(down)))
    }
}
