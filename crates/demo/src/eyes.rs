//! What the engine says of itself, as any reader of a fleet sees it: nothing here is known from
//! the inside.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_net::{grpc, message_limits, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    CycleSummary, DecisionRecord, ExplainNeedRequest, ExplainNeedResponse, InspectNeedsRequest,
    ListMachinesRequest, ListSessionsRequest, ListShardReportsRequest, MachineView, NeedView,
    ProviderEntry, RaftStatusRequest, RaftStatusResponse, SessionView, SetActuationRequest,
    ShardReportSnapshot, UpsertProviderRequest, WatchDecisionsRequest, WatchSummaryRequest,
    coordinator_client::CoordinatorClient, inspect_needs_response::Frame,
    shard_admin_client::ShardAdminClient, shard_observe_client::ShardObserveClient,
    shard_read_client::ShardReadClient,
};
use tokio::{
    sync::broadcast,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tonic::{Request, Status, transport::Channel};

use crate::Error;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Decisions that are remembered.
const DECISIONS: usize = 4_096;

/// A decision and who made it.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// Number of the shard.
    pub(crate) shard: usize,
    pub(crate) record: DecisionRecord,
}

/// What was last seen of a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardSeen {
    pub(crate) machines: Vec<MachineView>,
    pub(crate) needs: Vec<NeedView>,
    pub(crate) sessions: Vec<SessionView>,
    pub(crate) summary: Option<CycleSummary>,
    /// The cycle that the machines are of.
    pub(crate) cycle: i64,
    /// When it last answered; none while it does not.
    pub(crate) answered: Option<Instant>,
}

/// What was last seen of a replica; none while it does not answer.
pub(crate) type ReplicaSeen = Option<RaftStatusResponse>;

/// Eyes on all processes of a fleet.
pub(crate) struct Eyes {
    shards: Vec<ShardEye>,
    replicas: Vec<ReplicaEye>,
    decisions: Arc<Mutex<VecDeque<Decision>>>,
    news: broadcast::Sender<Decision>,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct ShardEye {
    number: usize,
    channel: Channel,
    admin: Channel,
    seen: Arc<Mutex<ShardSeen>>,
}

#[derive(Clone)]
struct ReplicaEye {
    channel: Channel,
    admin: Channel,
    seen: Arc<Mutex<ReplicaSeen>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn late(_: tokio::time::error::Elapsed) -> Status {
    Status::deadline_exceeded("no answer in time")
}

impl Eyes {
    /// Begins to look, whether anybody answers yet or not.
    pub(crate) fn open(
        shards: &[String],
        replicas: &[String],
        reader: &Security,
        admin: &Security,
    ) -> Result<Self, Error> {
        let (news, _) = broadcast::channel(DECISIONS);
        let decisions = Arc::<Mutex<VecDeque<Decision>>>::default();
        let mut tasks = JoinSet::new();
        let mut this = Self {
            shards: Vec::new(),
            replicas: Vec::new(),
            decisions: decisions.clone(),
            news: news.clone(),
            _tasks: JoinSet::new(),
        };
        for (number, addr) in shards.iter().enumerate() {
            let eye = ShardEye {
                number,
                channel: grpc::connect_lazy(addr, reader, Rule::any_shard())?,
                admin: grpc::connect_lazy(addr, admin, Rule::any_shard())?,
                seen: Arc::default(),
            };
            tasks.spawn(eye.clone().look());
            tasks.spawn(eye.clone().summaries());
            tasks.spawn(eye.clone().follow(decisions.clone(), news.clone()));
            this.shards.push(eye);
        }
        for addr in replicas {
            let eye = ReplicaEye {
                channel: grpc::connect_lazy(addr, reader, Rule::coordinators())?,
                admin: grpc::connect_lazy(addr, admin, Rule::coordinators())?,
                seen: Arc::default(),
            };
            tasks.spawn(eye.clone().look());
            this.replicas.push(eye);
        }
        this._tasks = tasks;
        Ok(this)
    }

    /// What was last seen of a shard.
    pub(crate) fn shard(&self, number: usize) -> ShardSeen {
        lock(&self.shards[number].seen).clone()
    }

    /// What was last seen of a replica.
    pub(crate) fn replica(&self, number: usize) -> ReplicaSeen {
        lock(&self.replicas[number].seen).clone()
    }

    /// Asks a replica now, rather than at the next look.
    pub(crate) async fn ask_replica(&self, number: usize) -> ReplicaSeen {
        self.replicas[number].ask().await
    }

    /// What the leader has heard of shards.
    pub(crate) async fn reports(&self) -> Vec<ShardReportSnapshot> {
        for replica in &self.replicas {
            let mut rpc = message_limits!(CoordinatorClient::new(replica.channel.clone()));
            let asked = rpc.list_shard_reports(ListShardReportsRequest::default());
            if let Ok(Ok(answer)) = timeout(PATIENCE, asked).await {
                return answer.into_inner().reports;
            }
        }
        Vec::new()
    }

    /// Tells whoever leads of a provider.
    pub(crate) async fn register(&self, provider: &ProviderEntry) -> Result<(), Status> {
        let mut refused = Status::unavailable("nobody was asked");
        for replica in &self.replicas {
            let mut rpc = CoordinatorClient::new(replica.admin.clone());
            let request = UpsertProviderRequest { provider: Some(provider.clone()) };
            match timeout(PATIENCE, rpc.upsert_provider(request)).await.map_err(late)? {
                Ok(_) => return Ok(()),
                Err(status) => refused = status,
            }
        }
        Err(refused)
    }

    /// The last decisions, oldest first.
    pub(crate) fn decisions(&self) -> Vec<Decision> {
        lock(&self.decisions).iter().cloned().collect()
    }

    /// Sequence of the last decision of each shard.
    pub(crate) fn marks(&self) -> Vec<i64> {
        let mut marks = vec![0; self.shards.len()];
        for decision in lock(&self.decisions).iter() {
            marks[decision.shard] = decision.record.sequence;
        }
        marks
    }

    /// Decisions as they come.
    pub(crate) fn news(&self) -> broadcast::Receiver<Decision> {
        self.news.subscribe()
    }

    /// The brake of one shard.
    pub(crate) async fn actuate(
        &self,
        number: usize,
        mode: i32,
        reason: &str,
    ) -> Result<(), Status> {
        let mut rpc = ShardAdminClient::new(self.shards[number].admin.clone());
        let request = SetActuationRequest { mode, reason: reason.to_owned() };
        timeout(PATIENCE, rpc.set_actuation(request)).await.map_err(late)?.map(drop)
    }

    /// Why a need fares as it does.
    pub(crate) async fn explain(
        &self,
        number: usize,
        need: ExplainNeedRequest,
    ) -> Result<ExplainNeedResponse, Status> {
        let channel = self.shards[number].channel.clone();
        let mut rpc = message_limits!(ShardObserveClient::new(channel));
        let answer = timeout(PATIENCE, rpc.explain_need(need)).await.map_err(late)??;
        Ok(answer.into_inner())
    }
}

impl ShardEye {
    async fn look(self) {
        loop {
            let answered = timeout(PATIENCE, self.once()).await.map_err(late);
            if let Err(status) | Ok(Err(status)) = answered {
                tracing::debug!(shard = self.number, %status, "does not answer");
                lock(&self.seen).answered = None;
            }
            sleep(LOOK).await;
        }
    }

    async fn once(&self) -> Result<(), Status> {
        let mut observe = message_limits!(ShardObserveClient::new(self.channel.clone()));
        let request = ListMachinesRequest { page_size: 1_000, ..Default::default() };
        let machines = observe.list_machines(request).await?.into_inner();
        let sessions = observe.list_sessions(ListSessionsRequest::default()).await?.into_inner();
        let needs = self.needs().await?;
        let mut seen = lock(&self.seen);
        seen.machines = machines.machines;
        seen.cycle = machines.cycle;
        seen.sessions = sessions.sessions;
        seen.needs = needs;
        seen.answered = Some(Instant::now());
        Ok(())
    }

    async fn needs(&self) -> Result<Vec<NeedView>, Status> {
        let mut read = message_limits!(ShardReadClient::new(self.channel.clone()));
        let request = InspectNeedsRequest { limit: 1_000, ..Default::default() };
        let mut stream = read.inspect_needs(request).await?.into_inner();
        let mut needs = Vec::new();
        while let Some(answer) = stream.message().await? {
            if let Some(Frame::Need(need)) = answer.frame {
                needs.push(need);
            }
        }
        Ok(needs)
    }

    async fn summaries(self) {
        loop {
            let mut rpc = message_limits!(ShardObserveClient::new(self.channel.clone()));
            if let Ok(stream) = rpc.watch_summary(WatchSummaryRequest {}).await {
                let mut stream = stream.into_inner();
                while let Ok(Some(summary)) = stream.message().await {
                    lock(&self.seen).summary = Some(summary);
                }
            }
            sleep(LOOK).await;
        }
    }

    async fn follow(
        self,
        decisions: Arc<Mutex<VecDeque<Decision>>>,
        news: broadcast::Sender<Decision>,
    ) {
        // From the oldest that is kept; later from where a lost stream ended.
        let mut after = -1;
        loop {
            let mut rpc = message_limits!(ShardObserveClient::new(self.channel.clone()));
            let request = WatchDecisionsRequest { after_sequence: after, ..Default::default() };
            if let Ok(stream) = rpc.watch_decisions(request).await {
                let mut stream = stream.into_inner();
                while let Ok(Some(record)) = stream.message().await {
                    if record.gap {
                        continue;
                    }
                    after = record.sequence;
                    let decision = Decision { shard: self.number, record };
                    let mut known = lock(&decisions);
                    if known.len() == DECISIONS {
                        known.pop_front();
                    }
                    known.push_back(decision.clone());
                    drop(known);
                    // Nobody may be listening.
                    let _ = news.send(decision);
                }
            }
            sleep(LOOK).await;
        }
    }
}

impl ReplicaEye {
    async fn look(self) {
        loop {
            let seen = self.ask().await;
            *lock(&self.seen) = seen;
            sleep(LOOK).await;
        }
    }

    async fn ask(&self) -> ReplicaSeen {
        let mut rpc = message_limits!(CoordinatorClient::new(self.channel.clone()));
        let asked = rpc.raft_status(Request::new(RaftStatusRequest {}));
        timeout(PATIENCE, asked).await.ok()?.ok().map(tonic::Response::into_inner)
    }
}
