//! `--join-addr`: the name behind which all replicas are, or a list of names.

use std::{net::SocketAddr, time::Duration};

use bigfleet_net::{grpc, message_limits, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    JoinRaftClusterRequest, RaftStatusRequest, coordinator_client::CoordinatorClient,
};
use tokio::{task::JoinSet, time::timeout};
use tonic::{Code, Status as RpcStatus, transport::Channel};

use super::super::{
    message::Answer,
    peers::{Joiner, MembershipError, NO_LONGER_A_MEMBER, Peers, Phase, Status},
};

/// One replica that is silent must not use up the time of the others.
const PER_ADDRESS: Duration = Duration::from_secs(3);

/// Asks the addresses that the names stand for, resolved at every round.
pub struct JoinAddr {
    names: Vec<String>,
    security: Security,
}

impl JoinAddr {
    /// `host:port`, usually one headless name; several are separated by commas.
    #[must_use]
    pub fn new(addresses: &str, security: Security) -> Self {
        let names = addresses.split(',').map(|name| name.trim().to_owned()).collect();
        Self { names, security }
    }

    /// Every address with the name it was found under, which its certificate
    /// must carry; names that do not resolve, apart.
    async fn resolve(&self) -> (Vec<(String, SocketAddr)>, Vec<String>) {
        let (mut found, mut unresolved) = (Vec::new(), Vec::new());
        for name in &self.names {
            match tokio::net::lookup_host(name).await {
                Ok(addresses) => found.extend(addresses.map(|at| (name.clone(), at))),
                Err(error) => unresolved.push(format!("{name}: {error}")),
            }
        }
        found.sort_unstable();
        found.dedup();
        (found, unresolved)
    }

    fn client(&self, name: &str, at: SocketAddr) -> Result<CoordinatorClient<Channel>, String> {
        let channel = grpc::connect_lazy_at(name, at, &self.security, Rule::coordinators());
        let channel = channel.map_err(|error| error.to_string())?;
        Ok(message_limits!(CoordinatorClient::new(channel)))
    }
}

impl Peers for JoinAddr {
    fn statuses(&self) -> Answer<'_, Vec<Result<Status, String>>> {
        Box::pin(async move {
            let (addresses, unresolved) = self.resolve().await;
            let mut asked = JoinSet::new();
            for (name, at) in addresses {
                let client = self.client(&name, at);
                asked.spawn(async move {
                    let silent = |why: String| format!("{at}: {why}");
                    let mut client = client.map_err(silent)?;
                    let answer = timeout(PER_ADDRESS, client.raft_status(RaftStatusRequest {}));
                    match answer.await {
                        Ok(Ok(answer)) => Ok(status(answer.into_inner())),
                        Ok(Err(refusal)) => Err(silent(refusal.to_string())),
                        Err(_) => Err(silent("no answer".to_owned())),
                    }
                });
            }
            let mut statuses = asked.join_all().await;
            statuses.extend(unresolved.into_iter().map(Err));
            statuses
        })
    }

    fn join(&self, request: Joiner) -> Answer<'_, Result<(), MembershipError>> {
        Box::pin(async move {
            let unavailable = MembershipError::Unavailable;
            let mut failure = unavailable("nobody leads".to_owned());
            for (name, at) in self.resolve().await.0 {
                let mut client = self.client(&name, at).map_err(unavailable)?;
                let call = client.join_raft_cluster(wire(&request));
                match timeout(PER_ADDRESS, call).await {
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(refusal)) => match membership_error(&refusal, &request.node_id) {
                        MembershipError::NotLeader => {}
                        error => failure = error,
                    },
                    Err(_) => {}
                }
            }
            Err(failure)
        })
    }
}

fn wire(request: &Joiner) -> JoinRaftClusterRequest {
    let Joiner { node_id, raft_address, grpc_address, fleet_id, max_kind, incarnation } =
        request.clone();
    JoinRaftClusterRequest { node_id, raft_address, grpc_address, fleet_id, max_kind, incarnation }
}

fn status(answer: bigfleet_wire::v1alpha1::RaftStatusResponse) -> Status {
    let index = |index| u64::try_from(index).unwrap_or_default();
    Status {
        node_id: answer.node_id,
        fleet_id: answer.fleet_id,
        phase: Phase::from_number(answer.phase),
        role: match answer.role.as_str() {
            "leader" => "leader",
            "candidate" => "candidate",
            "learner" => "learner",
            _ => "follower",
        },
        term: answer.term,
        leader_id: answer.leader_id,
        leader_grpc_address: answer.leader_grpc_address,
        commit_index: index(answer.commit_index),
        applied_index: index(answer.applied_index),
        voters: answer.voters,
    }
}

fn membership_error(status: &RpcStatus, node_id: &str) -> MembershipError {
    let text = status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition => MembershipError::NotLeader,
        // The one refusal after which asking again is of no use.
        Code::Aborted if text.contains(NO_LONGER_A_MEMBER) => {
            MembershipError::NoLongerAMember(node_id.to_owned())
        }
        Code::Aborted | Code::InvalidArgument | Code::PermissionDenied => {
            MembershipError::Refused(text)
        }
        _ => MembershipError::Unavailable(text),
    }
}
