//! `raft-status`, `raft-remove`.

use std::collections::BTreeSet;

use bigfleet_wire::v1alpha1::{RaftStatusResponse, RemoveRaftServerRequest};
use serde::Serialize;
use tonic::Code;

use crate::{
    Error,
    cli::Consent,
    console::Console,
    coordinator::{Replica, Rpc},
    fleet::Fleet,
    output::{self, Row},
    text,
};

/// One replica, as it says or as it does not answer.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaRow {
    /// As it was dialled.
    pub address: String,
    /// Its node id.
    pub node: String,
    /// follower, learner, candidate or leader.
    pub role: String,
    /// empty, forming, open or superseded.
    pub phase: String,
    /// The coordinator's term.
    pub term: i64,
    /// Whom it takes for the leader.
    pub leader: String,
    /// How far the log is committed.
    pub commit_index: i64,
    /// How far it is applied here.
    pub applied_index: i64,
    /// The fleet it belongs to.
    pub fleet_id: String,
    /// Who votes.
    pub voters: Vec<String>,
    /// Why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<Replica> for ReplicaRow {
    fn from(replica: Replica) -> Self {
        let address = replica.addr;
        match replica.status {
            Ok((status, _)) => Self { address, ..status.into() },
            Err(status) => {
                Self { address, error: Some(status.message().to_owned()), ..Self::default() }
            }
        }
    }
}

impl From<RaftStatusResponse> for ReplicaRow {
    fn from(status: RaftStatusResponse) -> Self {
        let phase = match status.phase {
            0 => "empty".to_owned(),
            1 => "forming".to_owned(),
            2 => "open".to_owned(),
            3 => "superseded".to_owned(),
            other => other.to_string(),
        };
        Self {
            address: String::new(),
            node: status.node_id,
            role: status.role,
            phase,
            term: status.term,
            leader: status.leader_id,
            commit_index: status.commit_index,
            applied_index: status.applied_index,
            fleet_id: status.fleet_id,
            voters: status.voters,
            error: None,
        }
    }
}

/// The fleets that these replicas belong to.
pub(super) fn fleets(replicas: &[ReplicaRow]) -> Vec<&str> {
    let known = replicas.iter().map(|replica| &*replica.fleet_id).filter(|id| !id.is_empty());
    known.collect::<BTreeSet<_>>().into_iter().collect()
}

impl Row for ReplicaRow {
    const HEAD: &'static [&'static str] =
        &["NODE", "ROLE", "PHASE", "TERM", "LEADER", "COMMIT", "APPLIED", "ADDRESS"];
    const WIDE: &'static [&'static str] = &["FLEET", "VOTERS"];

    fn cells(&self) -> Vec<String> {
        if let Some(error) = &self.error {
            let none = || "—".to_owned();
            let silent = format!("{} ({error})", self.address);
            return vec![none(), none(), none(), none(), none(), none(), none(), silent];
        }
        vec![
            self.node.clone(),
            self.role.clone(),
            self.phase.clone(),
            self.term.to_string(),
            text::or_dash(&self.leader),
            self.commit_index.to_string(),
            self.applied_index.to_string(),
            self.address.clone(),
        ]
    }

    fn wide(&self) -> Vec<String> {
        vec![text::or_dash(&self.fleet_id), text::or_dash(&self.voters.join(","))]
    }
}

pub(super) async fn status(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let replicas = fleet.coordinator.every_status().await;
    let answered = replicas.iter().any(|replica| replica.status.is_ok());
    let denied = replicas.iter().find_map(|replica| match &replica.status {
        Err(status) if status.code() == Code::PermissionDenied => {
            Some(Error::refused("raft-status", status))
        }
        _ => None,
    });
    let rows: Vec<ReplicaRow> = replicas.into_iter().map(Into::into).collect();
    output::list(console, fleet.format, &rows)?;
    match denied {
        _ if answered => Ok(()),
        Some(denied) => Err(denied),
        None => Err(Error::NoLeader("no replica answers".to_owned())),
    }
}

/// Flags of `raft-remove`.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Id of the replica
    #[arg(long, value_name = "ID")]
    node_id: String,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn remove(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &RemoveArgs,
) -> Result<(), Error> {
    let node = &args.node_id;
    let plan = format!("remove replica {node} from the consensus group; it must not come back");
    if !console.consent(args.consent, &[plan])? {
        return Ok(());
    }
    let request = RemoveRaftServerRequest { node_id: node.clone() };
    let call = async |mut rpc: Rpc, request| rpc.remove_raft_server(request).await;
    fleet.coordinator.ask("raft-remove", request, call).await?;
    console.line(&format!("removed replica {node}"))
}
