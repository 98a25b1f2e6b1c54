//! The service behind the script.

use std::{any::Any, collections::VecDeque, fmt::Debug, future::pending};

use bigfleet_net::{identity::Identity, peer::Gate, rule::Rule};
use bigfleet_wire::v1alpha1::{
    self as wire, ReportAck, ShardReport, coordinator_server, instruct_ack,
};
use tokio::{sync::watch, time::sleep};
use tokio_stream::{Iter, iter};
use tonic::{Request, Response, Status, metadata::MetadataValue};

use super::{
    answer::{Answer, not_leader},
    replies::Replies,
};

/// What is told and what was heard.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) reports: Vec<ShardReport>,
    pub(super) next: VecDeque<Answer>,
    pub(super) standing: Answer,
    pub(super) term: i64,
    pub(super) fleet_id: String,
    pub(super) pending: Vec<wire::CoordinatorInstruction>,
    pub(super) assignment: Option<wire::Assignment>,
    pub(super) wants_holdings: bool,
    pub(super) replies: Replies,
    /// What its clock says, if not the truth.
    pub(super) date: Option<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            reports: Vec::new(),
            next: VecDeque::new(),
            standing: Answer::Report,
            term: 1,
            fleet_id: String::new(),
            pending: Vec::new(),
            assignment: None,
            wants_holdings: false,
            replies: Replies::default(),
            date: None,
        }
    }
}

impl Script {
    fn receive(&mut self, report: ShardReport) -> Answer {
        let settles = |outcome: i32| {
            !matches!(
                instruct_ack::Outcome::try_from(outcome),
                Ok(instruct_ack::Outcome::Failed | instruct_ack::Outcome::Unspecified)
            )
        };
        self.pending.retain(|instruction| {
            !report
                .instruction_acks
                .iter()
                .any(|ack| ack.instruction_id == instruction.instruction_id && settles(ack.outcome))
        });
        self.reports.push(report);
        self.next.pop_front().unwrap_or_else(|| self.standing.clone())
    }

    fn ack(&self) -> ReportAck {
        let mut instructions = self.pending.clone();
        instructions.sort_by_key(|instruction| instruction.sequence_number);
        ReportAck {
            coordinator_term: self.term,
            acknowledged: true,
            instructions,
            fleet_id: self.fleet_id.clone(),
            assignment: self.due(),
            want_holdings: self.wants_holdings,
            ..Default::default()
        }
    }

    /// The Assignment, if the last report was of an older or another one, by a shard
    /// that shares its provider and knows the fleet.
    fn due(&self) -> Option<wire::Assignment> {
        let report = self.reports.last()?;
        let assignment = self.assignment.as_ref()?;
        let shares = report.assignment_digest != 0 && report.fleet_id == self.fleet_id;
        let same = report.assignment_version >= assignment.version
            && report.assignment_digest == assignment.digest;
        (shares && !same).then(|| assignment.clone())
    }
}

#[derive(Debug)]
pub(super) struct Service {
    script: watch::Sender<Script>,
    gate: Gate,
}

impl Service {
    pub(super) fn new(script: watch::Sender<Script>) -> Self {
        Self { script, gate: Gate::default() }
    }

    async fn answer(&self, request: Request<ShardReport>) -> Result<Response<ReportAck>, Status> {
        let shard = Identity::Shard(request.get_ref().shard_id.clone());
        self.gate.admit(&request, &Rule::exactly(shard))?;
        let mut answer = None;
        self.script.send_modify(|script| answer = Some(script.receive(request.into_inner())));
        loop {
            match answer.take() {
                Some(Answer::Late(after, then)) => {
                    sleep(after).await;
                    answer = Some(*then);
                }
                Some(Answer::Ack(ack)) => return Ok(Response::new(*ack)),
                Some(Answer::Refuse(code, text)) => return Err(Status::new(code, text)),
                Some(Answer::NotLeader { leader }) => return Err(not_leader(leader.as_ref())),
                Some(Answer::Never) => return pending().await,
                Some(Answer::Report) | None => {
                    return Ok(Response::new(self.script.borrow().ack()));
                }
            }
        }
    }

    /// Everything but reports: leadership, then the real gate, then the script.
    async fn reply<M: Debug, R: Any + Clone>(
        &self,
        request: Request<M>,
        rule: &Rule,
        leader_only: bool,
    ) -> Result<Response<R>, Status> {
        let standing = self.script.borrow().standing.clone();
        match standing {
            Answer::NotLeader { leader } if leader_only => {
                return Err(not_leader(leader.as_ref()));
            }
            Answer::Refuse(code, text) => return Err(Status::new(code, text)),
            Answer::Never => return pending().await,
            _ => {}
        }
        self.gate.admit(&request, rule)?;
        let asked = format!("{:?}", request.get_ref());
        let mut reply = None;
        self.script.send_modify(|script| {
            script.replies.asked.push(asked);
            reply = Some(script.replies.take());
        });
        let Some(reply) = reply else { return Err(Status::internal("no script")) };
        let mut response = Response::new(reply?);
        let date = self.script.borrow().date.clone();
        // What the transport would add, were it not there.
        if let Some(date) = date.and_then(|date| MetadataValue::try_from(date).ok()) {
            response.metadata_mut().insert("date", date);
        }
        Ok(response)
    }
}

type Chunks = Vec<wire::SnapshotSaveChunk>;

fn sound(chunk: wire::SnapshotSaveChunk) -> Result<wire::SnapshotSaveChunk, Status> {
    Ok(chunk)
}

macro_rules! serve {
    ($($rpc:ident: $request:ident => $response:ident, $rule:expr, $leader_only:expr;)*) => {
        #[tonic::async_trait]
        impl coordinator_server::Coordinator for Service {
            type SnapshotSaveStream = Iter<
                std::iter::Map<
                    std::vec::IntoIter<wire::SnapshotSaveChunk>,
                    fn(wire::SnapshotSaveChunk) -> Result<wire::SnapshotSaveChunk, Status>,
                >,
            >;

            async fn report_shard(
                &self,
                request: Request<ShardReport>,
            ) -> Result<Response<ReportAck>, Status> {
                self.answer(request).await
            }

            async fn snapshot_save(
                &self,
                request: Request<wire::SnapshotSaveRequest>,
            ) -> Result<Response<Self::SnapshotSaveStream>, Status> {
                let chunks: Chunks = self.reply(request, &Rule::admin(), true).await?.into_inner();
                Ok(Response::new(iter(chunks.into_iter().map(sound as fn(_) -> _))))
            }

            $(async fn $rpc(
                &self,
                request: Request<wire::$request>,
            ) -> Result<Response<wire::$response>, Status> {
                self.reply(request, &$rule, $leader_only).await
            })*
        }
    };
}

serve! {
    assign_domain: AssignDomainRequest => AssignDomainResponse, Rule::admin(), true;
    unassign_domain: UnassignDomainRequest => UnassignDomainResponse, Rule::admin(), true;
    remove_shard: RemoveShardRequest => RemoveShardResponse, Rule::admin(), true;
    set_quota: SetQuotaRequest => SetQuotaResponse, Rule::admin(), true;
    upsert_provider: UpsertProviderRequest => UpsertProviderResponse, Rule::admin(), true;
    remove_provider: RemoveProviderRequest => RemoveProviderResponse, Rule::admin(), true;
    move_domain: MoveDomainRequest => MoveDomainResponse, Rule::admin(), true;
    move_cluster: MoveClusterRequest => MoveClusterResponse, Rule::admin(), true;
    confirm_restore: ConfirmRestoreRequest => ConfirmRestoreResponse, Rule::admin(), true;
    remove_raft_server: RemoveRaftServerRequest => RemoveRaftServerResponse, Rule::admin(), true;
    join_raft_cluster: JoinRaftClusterRequest => JoinRaftClusterResponse, Rule::coordinators(), true;
    list_shards: ListShardsRequest => ListShardsResponse, Rule::readers(), true;
    list_domain_assignments: ListDomainAssignmentsRequest => ListDomainAssignmentsResponse,
        Rule::readers(), true;
    list_shard_reports: ListShardReportsRequest => ListShardReportsResponse, Rule::readers(), true;
    list_quotas: ListQuotasRequest => ListQuotasResponse, Rule::readers(), true;
    list_providers: ListProvidersRequest => ListProvidersResponse, Rule::readers(), true;
    list_transfers: ListTransfersRequest => ListTransfersResponse, Rule::readers(), true;
    raft_status: RaftStatusRequest => RaftStatusResponse,
        Rule::coordinators().or(Identity::Readonly), false;
}
