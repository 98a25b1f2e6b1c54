//! A shard that answers reads.

#![allow(clippy::needless_collect, reason = "streams outlive what they are made from")]

use std::{future::pending, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bigfleet_wire::v1alpha1::{
    AheadNeed, CapacityNeed, CapacityType, CycleSummary, DecisionRecord, ExplainNeedRequest,
    ExplainNeedResponse, GetMachineRequest, GetMachineResponse, InspectNeedsHeader,
    InspectNeedsRequest, InspectNeedsResponse, ListMachinesRequest, ListMachinesResponse,
    ListSessionsRequest, ListSessionsResponse, Machine, MachineState, MachineTransition,
    MachineView, NeedView, SessionView, UnmetReason, WatchDecisionsRequest, WatchSummaryRequest,
    WhatIfPick, WhatIfRequest, WhatIfResponse,
    inspect_needs_response::Frame,
    shard_observe_server::{ShardObserve, ShardObserveServer},
    shard_read_server::{ShardRead, ShardReadServer},
};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, broadcast, watch},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::rig::Mood;

pub(crate) const CLUSTERS: [&str; 2] = ["prod-a", "prod-b"];

/// Who may read needs at once (shard chapter §15).
pub(crate) const READERS: usize = 8;

#[derive(Clone)]
pub(crate) struct Script {
    mood: Arc<watch::Sender<Mood>>,
    cycle: Arc<watch::Sender<i64>>,
    pub(crate) needs: Arc<watch::Sender<Arc<Vec<NeedView>>>>,
    pub(crate) machines: Arc<watch::Sender<Vec<MachineView>>>,
    pub(crate) decisions: broadcast::Sender<DecisionRecord>,
    /// Where its log ends, as it says.
    pub(crate) head: Arc<watch::Sender<i64>>,
    /// How long it is silent before each record that it kept.
    pub(crate) pause: Arc<watch::Sender<Duration>>,
    /// Places for readers of needs, as many as a shard has.
    pub(crate) readers: Arc<Semaphore>,
    /// Whether readers of needs get more than the header.
    pub(crate) flowing: Arc<watch::Sender<bool>>,
    /// The most who read needs at once.
    pub(crate) crowd: Arc<watch::Sender<usize>>,
    /// Whose needs were asked for, and how many.
    pub(crate) inspected: Arc<watch::Sender<Vec<(String, i32)>>>,
    /// Calls by name.
    pub(crate) asked: Arc<watch::Sender<Vec<&'static str>>>,
}

pub(crate) struct Shard {
    pub(crate) addr: SocketAddr,
    pub(crate) script: Script,
}

/// A need of this cluster.
pub(crate) fn need(cluster: &str, fingerprint: &str) -> NeedView {
    NeedView {
        need: Some(CapacityNeed {
            aggregate_resources: [("cpu".to_owned(), "8".to_owned())].into(),
            priority: 100,
            interruption_penalty_bucket: 2,
            ..CapacityNeed::default()
        }),
        cluster_id: cluster.to_owned(),
        profile_fingerprint: fingerprint.to_owned(),
        arrival_unix_nanos: 5,
        unmet_reason: UnmetReason::PriorityStarved.into(),
        ..NeedView::default()
    }
}

/// A decision about this cluster.
pub(crate) fn decision(sequence: i64, cluster: &str) -> DecisionRecord {
    DecisionRecord {
        sequence,
        cycle: 7,
        time_unix_nanos: 4,
        kind: "Bootstrap".to_owned(),
        machine_id: "m-1".to_owned(),
        cluster_id: cluster.to_owned(),
        effective_cost: 0.25,
        runner_up_cost: 1.0,
        outcome: "decided".to_owned(),
        ..DecisionRecord::default()
    }
}

/// When a cycle was.
const fn computed(cycle: i64) -> i64 {
    if cycle == 0 { 0 } else { 9 }
}

/// A machine of this cluster.
pub(crate) fn machine(id: &str, cluster: &str) -> MachineView {
    MachineView {
        machine: Some(Machine {
            id: id.to_owned(),
            state: MachineState::Configured.into(),
            capacity_type: CapacityType::Spot.into(),
            price_per_hour: 0.5,
            cluster: cluster.to_owned(),
            ..Machine::default()
        }),
        ..MachineView::default()
    }
}

/// A machine that is being created for a need of `prod-b`, which has it only later.
fn coming() -> MachineView {
    let mut view = machine("m-3", "");
    if let Some(machine) = &mut view.machine {
        machine.state = MachineState::Creating.into();
        "team-b is over its quota".clone_into(&mut machine.last_error);
    }
    MachineView {
        assigned_priority: 77,
        assigned_interruption_penalty_dollars: 4.5,
        assigned_reclamation_penalty_dollars: 4.5,
        assigned_fingerprint: "zone in (team-b)".to_owned(),
        assigned_group: "zone\0app=secret\0team-b".to_owned(),
        claimed_by_fingerprint: "zone in (team-b)".to_owned(),
        claimed_by_group: "zone\0app=secret\0team-b".to_owned(),
        ..view
    }
}

fn id_of(view: &MachineView) -> &str {
    view.machine.as_ref().map_or("", |machine| &machine.id)
}

impl Shard {
    pub(crate) async fn start() -> Self {
        let needs = CLUSTERS.iter().map(|cluster| need(cluster, "f")).collect();
        let machines = vec![machine("m-1", "prod-a"), machine("m-2", "prod-b"), coming()];
        let script = Script {
            mood: Arc::new(watch::Sender::new(Mood::Good)),
            cycle: Arc::new(watch::Sender::new(7)),
            needs: Arc::new(watch::Sender::new(Arc::new(needs))),
            machines: Arc::new(watch::Sender::new(machines)),
            decisions: broadcast::Sender::new(64),
            head: Arc::new(watch::Sender::new(2)),
            pause: Arc::new(watch::Sender::new(Duration::ZERO)),
            readers: Arc::new(Semaphore::new(READERS)),
            flowing: Arc::new(watch::Sender::new(true)),
            crowd: Arc::new(watch::Sender::new(0)),
            inspected: Arc::new(watch::Sender::new(Vec::new())),
            asked: Arc::new(watch::Sender::new(Vec::new())),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let server = Server::builder()
            .add_service(ShardReadServer::new(script.clone()))
            .add_service(ShardObserveServer::new(script.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { addr, script }
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.script.mood.send_replace(mood);
    }

    /// The number of the last cycle; 0 is none.
    pub(crate) fn set_cycle(&self, cycle: i64) {
        self.script.cycle.send_replace(cycle);
    }

    /// Waits until decisions are watched.
    pub(crate) async fn watched(&self) {
        let deadline = tokio::time::Instant::now() + crate::rig::PATIENCE;
        while self.script.decisions.receiver_count() == 0 {
            assert!(tokio::time::Instant::now() < deadline, "nobody watches");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Waits until decisions are watched no more.
    pub(crate) async fn unwatched(&self) {
        let deadline = tokio::time::Instant::now() + crate::rig::PATIENCE;
        while self.script.decisions.receiver_count() > 0 {
            assert!(tokio::time::Instant::now() < deadline, "somebody watches on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// One more decision.
    pub(crate) fn decide(&self, record: DecisionRecord) {
        let _ = self.script.decisions.send(record);
    }
}

impl Script {
    async fn mood(&self, call: &'static str) -> Result<i64, Status> {
        self.asked.send_modify(|asked| asked.push(call));
        let mood = *self.mood.borrow();
        match mood {
            Mood::Good => Ok(*self.cycle.borrow()),
            Mood::Failing => Err(Status::unavailable("broken")),
            Mood::Hanging => pending().await,
        }
    }
}

type Frames<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl ShardRead for Script {
    type InspectNeedsStream = Frames<InspectNeedsResponse>;

    async fn inspect_needs(
        &self,
        request: Request<InspectNeedsRequest>,
    ) -> Result<Response<Self::InspectNeedsStream>, Status> {
        let cycle = self.mood("inspect_needs").await?;
        let place = self.readers.clone().try_acquire_owned();
        let place = place.map_err(|_| Status::resource_exhausted("8 readers are here already"))?;
        let here = READERS - self.readers.available_permits();
        self.crowd.send_modify(|crowd| *crowd = here.max(*crowd));
        let InspectNeedsRequest { cluster_id, limit } = request.into_inner();
        self.inspected.send_modify(|inspected| inspected.push((cluster_id.clone(), limit)));
        let all = self.needs.borrow().clone();
        let of = |need: &&NeedView| cluster_id.is_empty() || need.cluster_id == cluster_id;
        let total = all.iter().filter(of).count();
        let limit = if limit > 0 { limit as usize } else { usize::MAX };
        let header = InspectNeedsHeader {
            cycle,
            computed_at_unix_nanos: computed(cycle),
            total_needs: i32::try_from(total).unwrap(),
        };
        let needs: Vec<NeedView> = all.iter().filter(of).take(limit).cloned().collect();
        let mut flowing = self.flowing.subscribe();
        let rows = stream::once(async move {
            let _ = flowing.wait_for(|flowing| *flowing).await;
            stream::iter(needs.into_iter().map(Frame::Need))
        });
        let frames = stream::iter([Frame::Header(header)]).chain(rows.flatten());
        let frames = frames.map(move |frame| {
            let _until_the_end = &place;
            Ok(InspectNeedsResponse { frame: Some(frame) })
        });
        Ok(Response::new(frames.boxed()))
    }
}

#[tonic::async_trait]
impl ShardObserve for Script {
    type WatchSummaryStream = Frames<CycleSummary>;
    type WatchDecisionsStream = Frames<DecisionRecord>;

    async fn watch_summary(
        &self,
        _: Request<WatchSummaryRequest>,
    ) -> Result<Response<Self::WatchSummaryStream>, Status> {
        self.mood("watch_summary").await?;
        let cycles = tokio_stream::wrappers::WatchStream::new(self.cycle.subscribe());
        let last_decision_sequence = *self.head.borrow();
        let frame = move |cycle| {
            Ok(CycleSummary { cycle, needs: 2, last_decision_sequence, ..CycleSummary::default() })
        };
        Ok(Response::new(cycles.map(frame).boxed()))
    }

    async fn watch_decisions(
        &self,
        request: Request<WatchDecisionsRequest>,
    ) -> Result<Response<Self::WatchDecisionsStream>, Status> {
        self.mood("watch_decisions").await?;
        let live = tokio_stream::wrappers::BroadcastStream::new(self.decisions.subscribe());
        let live = live.map(|record| record.map_err(|_| Status::resource_exhausted("slow")));
        let after = request.into_inner().after_sequence;
        let kept = (1..=2).filter(|sequence| after != 0 && *sequence > after);
        let pause = *self.pause.borrow();
        let kept = stream::iter(kept.collect::<Vec<_>>()).then(move |sequence| async move {
            tokio::time::sleep(pause).await;
            Ok(decision(sequence, CLUSTERS[sequence as usize - 1]))
        });
        Ok(Response::new(kept.chain(live).boxed()))
    }

    async fn list_machines(
        &self,
        request: Request<ListMachinesRequest>,
    ) -> Result<Response<ListMachinesResponse>, Status> {
        let cycle = self.mood("list_machines").await?;
        let ListMachinesRequest { id_prefix: prefix, page_token, page_size, .. } =
            request.into_inner();
        let mut machines = self.machines.borrow().clone();
        machines.retain(|view| id_of(view).starts_with(&prefix));
        machines.sort_by(|a, b| id_of(a).cmp(id_of(b)));
        let total = u32::try_from(machines.len()).unwrap();
        // A token as a shard's: how many there are, and the last of the page before.
        if let Some((_, after)) = page_token.split_first_chunk::<4>() {
            machines.retain(|view| id_of(view).as_bytes() > after);
        } else if !page_token.is_empty() {
            return Err(Status::invalid_argument("page_token: none of ours"));
        }
        let page = usize::try_from(page_size).ok().filter(|page| (1..=1_000).contains(page));
        let page = page.unwrap_or(1_000);
        let next_page_token = match machines.get(page - 1) {
            Some(last) if machines.len() > page => {
                [&total.to_be_bytes()[..], id_of(last).as_bytes()].concat()
            }
            _ => Vec::new(),
        };
        machines.truncate(page);
        Ok(Response::new(ListMachinesResponse {
            machines,
            cycle,
            computed_at_unix_nanos: computed(cycle),
            total: i32::try_from(total).unwrap(),
            next_page_token,
        }))
    }

    async fn get_machine(
        &self,
        request: Request<GetMachineRequest>,
    ) -> Result<Response<GetMachineResponse>, Status> {
        self.mood("get_machine").await?;
        let id = request.into_inner().machine_id;
        let view = self.machines.borrow().iter().find(|view| id_of(view) == id).cloned();
        let view = view.ok_or_else(|| Status::not_found(format!("no machine {id}")))?;
        let transition = |cluster: &str| MachineTransition {
            to: MachineState::Configured.into(),
            cluster_id: cluster.to_owned(),
            error: format!("{cluster} lost a disk"),
            of_sequence: 5,
            ..MachineTransition::default()
        };
        let mut transitions = CLUSTERS.map(transition).to_vec();
        transitions.push(MachineTransition {
            error: "team-b is over its quota".to_owned(),
            ..transition("")
        });
        Ok(Response::new(GetMachineResponse { view: Some(view), transitions }))
    }

    async fn list_sessions(
        &self,
        _: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        self.mood("list_sessions").await?;
        let session = |cluster: &str| SessionView {
            cluster_id: cluster.to_owned(),
            ..SessionView::default()
        };
        Ok(Response::new(ListSessionsResponse { sessions: CLUSTERS.map(session).to_vec() }))
    }

    async fn explain_need(
        &self,
        request: Request<ExplainNeedRequest>,
    ) -> Result<Response<ExplainNeedResponse>, Status> {
        let cycle = self.mood("explain_need").await?;
        let request = request.into_inner();
        if request.profile_fingerprint != "f" {
            return Err(Status::not_found("no such need"));
        }
        let ahead = |cluster: &str| AheadNeed {
            cluster_id: cluster.to_owned(),
            machines_taken: 2,
            ..AheadNeed::default()
        };
        Ok(Response::new(ExplainNeedResponse {
            cycle,
            computed_at_unix_nanos: computed(cycle),
            need: Some(need(&request.cluster_id, "f")),
            ahead: CLUSTERS.map(ahead).to_vec(),
            decisions: CLUSTERS.map(|cluster| decision(1, cluster)).to_vec(),
            ..ExplainNeedResponse::default()
        }))
    }

    async fn what_if(
        &self,
        request: Request<WhatIfRequest>,
    ) -> Result<Response<WhatIfResponse>, Status> {
        let cycle = self.mood("what_if").await?;
        let need = request.into_inner().need.unwrap_or_default();
        if need.priority < 0 {
            return Err(Status::invalid_argument("priority: must not be negative"));
        }
        let victim = |cluster: &str| WhatIfPick {
            machine_id: format!("m-of-{cluster}"),
            effective_cost: 0.5,
            cluster_id: cluster.to_owned(),
            priority: 77,
            ..WhatIfPick::default()
        };
        let victims = CLUSTERS.map(victim).to_vec();
        Ok(Response::new(WhatIfResponse {
            cycle,
            computed_at_unix_nanos: computed(cycle),
            satisfied: true,
            victims,
            ..Default::default()
        }))
    }
}
