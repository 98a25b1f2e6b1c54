//! The table of RPCs.

use bigfleet_wire::v1alpha1::{self as wire, coordinator_server};
use tonic::{Request, Response, Status};

use super::{Coordinator, Replica, admin, snapshot::Chunks};
use crate::state::Command;

/// Its name in metrics; all others are written where they stand.
pub(super) const REPORT_SHARD: &str = "ReportShard";

#[tonic::async_trait]
impl<R: Replica> coordinator_server::Coordinator for Coordinator<R> {
    type SnapshotSaveStream = Chunks;

    async fn report_shard(
        &self,
        request: Request<wire::ShardReport>,
    ) -> Result<Response<wire::ReportAck>, Status> {
        self.report(request).await.map(Response::new)
    }

    async fn assign_domain(
        &self,
        request: Request<wire::AssignDomainRequest>,
    ) -> Result<Response<wire::AssignDomainResponse>, Status> {
        self.change("AssignDomain", request, admin::assign_domain).await?;
        Ok(Response::new(wire::AssignDomainResponse {}))
    }

    async fn unassign_domain(
        &self,
        request: Request<wire::UnassignDomainRequest>,
    ) -> Result<Response<wire::UnassignDomainResponse>, Status> {
        self.change("UnassignDomain", request, admin::unassign_domain).await?;
        Ok(Response::new(wire::UnassignDomainResponse {}))
    }

    async fn remove_shard(
        &self,
        request: Request<wire::RemoveShardRequest>,
    ) -> Result<Response<wire::RemoveShardResponse>, Status> {
        self.change("RemoveShard", request, admin::remove_shard).await?;
        Ok(Response::new(wire::RemoveShardResponse {}))
    }

    async fn set_quota(
        &self,
        request: Request<wire::SetQuotaRequest>,
    ) -> Result<Response<wire::SetQuotaResponse>, Status> {
        self.change("SetQuota", request, admin::set_quota).await?;
        Ok(Response::new(wire::SetQuotaResponse {}))
    }

    async fn upsert_provider(
        &self,
        request: Request<wire::UpsertProviderRequest>,
    ) -> Result<Response<wire::UpsertProviderResponse>, Status> {
        self.change("UpsertProvider", request, admin::upsert_provider).await?;
        Ok(Response::new(wire::UpsertProviderResponse {}))
    }

    async fn remove_provider(
        &self,
        request: Request<wire::RemoveProviderRequest>,
    ) -> Result<Response<wire::RemoveProviderResponse>, Status> {
        self.change("RemoveProvider", request, admin::remove_provider).await?;
        Ok(Response::new(wire::RemoveProviderResponse {}))
    }

    async fn move_domain(
        &self,
        request: Request<wire::MoveDomainRequest>,
    ) -> Result<Response<wire::MoveDomainResponse>, Status> {
        self.change("MoveDomain", request, admin::move_domain).await?;
        Ok(Response::new(wire::MoveDomainResponse {}))
    }

    async fn move_cluster(
        &self,
        request: Request<wire::MoveClusterRequest>,
    ) -> Result<Response<wire::MoveClusterResponse>, Status> {
        self.change("MoveCluster", request, admin::move_cluster).await?;
        Ok(Response::new(wire::MoveClusterResponse {}))
    }

    async fn confirm_restore(
        &self,
        request: Request<wire::ConfirmRestoreRequest>,
    ) -> Result<Response<wire::ConfirmRestoreResponse>, Status> {
        let confirm = |_: &_| Ok(Command::ConfirmRestore {});
        let effect = self.change("ConfirmRestore", request, confirm).await?;
        Ok(Response::new(admin::confirmed(effect)))
    }

    async fn list_shards(
        &self,
        request: Request<wire::ListShardsRequest>,
    ) -> Result<Response<wire::ListShardsResponse>, Status> {
        self.shards("ListShards", request).await.map(Response::new)
    }

    async fn list_domain_assignments(
        &self,
        request: Request<wire::ListDomainAssignmentsRequest>,
    ) -> Result<Response<wire::ListDomainAssignmentsResponse>, Status> {
        self.domain_assignments("ListDomainAssignments", request).await.map(Response::new)
    }

    async fn list_shard_reports(
        &self,
        request: Request<wire::ListShardReportsRequest>,
    ) -> Result<Response<wire::ListShardReportsResponse>, Status> {
        self.shard_reports("ListShardReports", request).await.map(Response::new)
    }

    async fn list_quotas(
        &self,
        request: Request<wire::ListQuotasRequest>,
    ) -> Result<Response<wire::ListQuotasResponse>, Status> {
        self.quotas("ListQuotas", request).await.map(Response::new)
    }

    async fn list_providers(
        &self,
        request: Request<wire::ListProvidersRequest>,
    ) -> Result<Response<wire::ListProvidersResponse>, Status> {
        self.providers("ListProviders", request).await.map(Response::new)
    }

    async fn list_transfers(
        &self,
        request: Request<wire::ListTransfersRequest>,
    ) -> Result<Response<wire::ListTransfersResponse>, Status> {
        self.transfers("ListTransfers", request).await.map(Response::new)
    }

    async fn join_raft_cluster(
        &self,
        request: Request<wire::JoinRaftClusterRequest>,
    ) -> Result<Response<wire::JoinRaftClusterResponse>, Status> {
        self.join("JoinRaftCluster", request).await?;
        Ok(Response::new(wire::JoinRaftClusterResponse {}))
    }

    async fn remove_raft_server(
        &self,
        request: Request<wire::RemoveRaftServerRequest>,
    ) -> Result<Response<wire::RemoveRaftServerResponse>, Status> {
        self.remove_server("RemoveRaftServer", request).await?;
        Ok(Response::new(wire::RemoveRaftServerResponse {}))
    }

    async fn raft_status(
        &self,
        request: Request<wire::RaftStatusRequest>,
    ) -> Result<Response<wire::RaftStatusResponse>, Status> {
        Coordinator::raft_status(self, "RaftStatus", &request).map(Response::new)
    }

    async fn snapshot_save(
        &self,
        request: Request<wire::SnapshotSaveRequest>,
    ) -> Result<Response<Chunks>, Status> {
        self.save("SnapshotSave", request).await.map(Response::new)
    }
}
