//! Replicas come and go.

use bigfleet_net::{identity::Identity, rule::Rule};
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::timeout_at;
use tonic::{Request, Status};

use super::{
    Coordinator, Joiner, Replica, ReplicaError,
    guard::{Led, Serves},
};
use crate::reports::limits;

impl<R: Replica> Coordinator<R> {
    /// An admin, or the replica itself. Also while the fleet forms: this is how it does.
    pub(super) async fn join(
        &self,
        rpc: &'static str,
        request: Request<wire::JoinRaftClusterRequest>,
    ) -> Result<(), Status> {
        let itself = Identity::Coordinator(request.get_ref().node_id.clone());
        let rule = Rule::admin().or(itself);
        let led = self.lead(&request, &rule, Serves::Forming)?;
        self.admit(rpc, &request, &rule)?;
        let request = request.into_inner();
        limits::id("node_id", &request.node_id)?;
        limits::given("raft_address", &request.raft_address)?;
        limits::address("raft_address", &request.raft_address)?;
        limits::address("grpc_address", &request.grpc_address)?;
        let joiner = Joiner {
            node_id: request.node_id,
            raft_address: request.raft_address,
            grpc_address: request.grpc_address,
            fleet_id: request.fleet_id,
            max_kind: request.max_kind,
            incarnation: request.incarnation,
        };
        in_time(led, self.replica.join(joiner)).await
    }

    pub(super) async fn remove_server(
        &self,
        rpc: &'static str,
        request: Request<wire::RemoveRaftServerRequest>,
    ) -> Result<(), Status> {
        let led = self.enter(rpc, &request, &Rule::admin())?;
        let node_id = request.into_inner().node_id;
        limits::id("node_id", &node_id)?;
        in_time(led, self.replica.remove_server(node_id)).await
    }

    /// Of every replica, whatever its phase.
    pub(super) fn raft_status(
        &self,
        rpc: &'static str,
        request: &Request<wire::RaftStatusRequest>,
    ) -> Result<wire::RaftStatusResponse, Status> {
        self.admit(rpc, request, &Rule::coordinators().or(Identity::Readonly))?;
        Ok(self.replica.status())
    }
}

async fn in_time(
    led: Led,
    change: impl Future<Output = Result<(), ReplicaError>>,
) -> Result<(), Status> {
    let changed = timeout_at(led.until, change).await;
    let late = "the group did not change in time; the outcome is unknown, and it is safe to retry";
    Ok(changed.map_err(|_| Status::unavailable(late))??)
}
