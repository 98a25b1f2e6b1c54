//! Every registered shard.

use bigfleet_wire::v1alpha1::{GetActuationRequest, ShardRegistryEntry};
use futures_util::future::join_all;
use tokio::time::timeout;
use tonic::Status;

use super::{
    finding::Findings,
    replicas::unreachable,
    running::{Kind, Process},
    skew,
};
use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    known,
    shards::{Shard, listed},
    when::{self, STALE},
};

/// Looks at every shard; returns those that answered.
pub(super) async fn check(
    fleet: &mut Fleet,
    console: &mut Console,
    findings: &mut Findings,
) -> Vec<Process> {
    let (list, failure) = listed(fleet, console).await;
    if let Some(error) = &failure {
        let fix = match error {
            Error::Denied(_) => "use a certificate with bigfleet://admin or bigfleet://readonly",
            _ => "mend the coordinator first; shards go on without it",
        };
        findings.fault("shards", "coordinator", error.to_string(), fix);
    }
    if list.is_empty() && failure.is_none() {
        findings.warning(
            "shards",
            "coordinator",
            "no shard has registered",
            "start shards with --coordinator-addr; `bigfleet shard --help` tells more",
        );
    }
    for entry in &list {
        registration(entry, findings);
    }
    let dialled = known::of_list(&list);
    let asked = join_all(dialled.iter().map(|(id, addr)| ask(fleet, id, addr))).await;
    let mut processes = Vec::new();
    for ((id, addr), answer) in dialled.iter().zip(asked) {
        match answer {
            Ok(date) => {
                findings.ok("shard", id, format!("answers at {addr}"));
                skew::check(id, date.as_deref(), findings);
                processes.push(Process { id: id.clone(), addr: addr.clone(), kind: Kind::Shard });
            }
            Err(status) => {
                let (detail, fix) = unreachable(status.code(), status.message(), "shard");
                findings.fault("shard", id, format!("{addr}: {detail}"), fix);
            }
        }
    }
    processes
}

fn registration(entry: &ShardRegistryEntry, findings: &mut Findings) {
    let (id, heartbeat) = (&entry.shard_id, entry.last_heartbeat_unix_ns);
    let age = when::now().saturating_sub(heartbeat);
    if entry.address.is_empty() {
        findings.fault(
            "shard",
            id,
            "it registered without an address, so nobody can look at it or pause it",
            "start it with --advertise-addr host:port",
        );
    }
    if heartbeat != 0 && age > STALE {
        findings.fault(
            "heartbeat",
            id,
            format!("its last report is {} old", when::span(age)),
            "look at its log for coordinator errors; if it is gone for good, `remove-shard`",
        );
    }
}

/// The clock that its answer shows.
async fn ask(fleet: &Fleet, id: &str, addr: &str) -> Result<Option<String>, Status> {
    let dialled = Shard::dial(Some(id), addr, &fleet.security, fleet.timeout);
    let shard = dialled.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut rpc = shard.admin();
    let request = shard.request(GetActuationRequest {});
    let late = |_| Err(Status::deadline_exceeded("no answer in time"));
    let answer = timeout(fleet.timeout, rpc.get_actuation(request)).await.unwrap_or_else(late)?;
    let date = answer.metadata().get("date").and_then(|date| date.to_str().ok());
    Ok(date.map(str::to_owned))
}
