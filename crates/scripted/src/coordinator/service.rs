//! The service behind the script.

use std::{collections::VecDeque, future::pending};

use bigfleet_net::{identity::Identity, peer::Gate, rule::Rule};
use bigfleet_wire::v1alpha1::{
    self as wire, ReportAck, ShardReport, coordinator_server, instruct_ack,
};
use tokio::{sync::watch, time::sleep};
use tokio_stream::Empty;
use tonic::{Request, Response, Status};

use super::answer::{Answer, not_leader};

/// What is told and what was heard.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) reports: Vec<ShardReport>,
    pub(super) next: VecDeque<Answer>,
    pub(super) standing: Answer,
    pub(super) term: i64,
    pub(super) fleet_id: String,
    pub(super) pending: Vec<wire::CoordinatorInstruction>,
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
            ..Default::default()
        }
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
}

/// Serves reports and refuses the rest.
macro_rules! only_reports {
    ($($rpc:ident: $request:ident => $response:ident;)*) => {
        #[tonic::async_trait]
        impl coordinator_server::Coordinator for Service {
            type SnapshotSaveStream = Empty<Result<wire::SnapshotSaveChunk, Status>>;

            async fn report_shard(
                &self,
                request: Request<ShardReport>,
            ) -> Result<Response<ReportAck>, Status> {
                self.answer(request).await
            }

            async fn snapshot_save(
                &self,
                _: Request<wire::SnapshotSaveRequest>,
            ) -> Result<Response<Self::SnapshotSaveStream>, Status> {
                Err(unscripted())
            }

            $(async fn $rpc(
                &self,
                _: Request<wire::$request>,
            ) -> Result<Response<wire::$response>, Status> {
                Err(unscripted())
            })*
        }
    };
}

fn unscripted() -> Status {
    Status::unimplemented("a scripted coordinator takes reports only")
}

only_reports! {
    assign_domain: AssignDomainRequest => AssignDomainResponse;
    unassign_domain: UnassignDomainRequest => UnassignDomainResponse;
    remove_shard: RemoveShardRequest => RemoveShardResponse;
    set_quota: SetQuotaRequest => SetQuotaResponse;
    upsert_provider: UpsertProviderRequest => UpsertProviderResponse;
    remove_provider: RemoveProviderRequest => RemoveProviderResponse;
    move_domain: MoveDomainRequest => MoveDomainResponse;
    move_cluster: MoveClusterRequest => MoveClusterResponse;
    confirm_restore: ConfirmRestoreRequest => ConfirmRestoreResponse;
    remove_raft_server: RemoveRaftServerRequest => RemoveRaftServerResponse;
    join_raft_cluster: JoinRaftClusterRequest => JoinRaftClusterResponse;
    list_shards: ListShardsRequest => ListShardsResponse;
    list_domain_assignments: ListDomainAssignmentsRequest => ListDomainAssignmentsResponse;
    list_shard_reports: ListShardReportsRequest => ListShardReportsResponse;
    list_quotas: ListQuotasRequest => ListQuotasResponse;
    list_providers: ListProvidersRequest => ListProvidersResponse;
    raft_status: RaftStatusRequest => RaftStatusResponse;
}
