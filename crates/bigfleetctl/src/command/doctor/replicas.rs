//! The coordinator: every replica, and who leads.

use bigfleet_net::grpc::code_name;
use tonic::Code;

use super::{
    finding::Findings,
    running::{Kind, Process},
    skew,
};
use crate::{
    command::raft::{ReplicaRow, fleets},
    fleet::Fleet,
};

/// Log entries that a replica may be behind.
const LAG: i64 = 10_000;

/// Looks at every replica; returns those that answered.
pub(super) async fn check(fleet: &mut Fleet, findings: &mut Findings) -> Vec<Process> {
    let mut rows = Vec::new();
    let mut processes = Vec::new();
    for replica in fleet.coordinator.every_status().await {
        let addr = replica.addr.clone();
        match &replica.status {
            Err(status) => {
                let (detail, fix) = unreachable(status.code(), status.message(), "replica");
                findings.fault("replica", &addr, detail, fix);
            }
            Ok((status, date)) => {
                findings.ok(
                    "replica",
                    &addr,
                    format!("{} answers as {}", status.node_id, status.role),
                );
                skew::check(&addr, date.as_deref(), findings);
                let (id, kind) = (status.node_id.clone(), Kind::Replica);
                processes.push(Process { id, addr, kind });
                rows.push(ReplicaRow::from(replica));
            }
        }
    }
    leadership(&rows, findings);
    for row in &rows {
        phase(row, findings);
    }
    processes
}

/// What a failed call tells, and what to do.
pub(super) fn unreachable(code: Code, message: &str, who: &str) -> (String, String) {
    let holds = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    let fix = if code == Code::PermissionDenied {
        "use a certificate with bigfleet://admin or bigfleet://readonly".to_owned()
    } else if code == Code::Unimplemented {
        format!("upgrade the {who}: it does not know this call")
    } else if holds(&["peer presented"]) {
        match who {
            "replica" => "issue the replica a certificate with bigfleet://coordinator/<node_id> or bigfleet://admin".to_owned(),
            _ => "issue the shard a certificate with its own bigfleet://shard/<shard_id>, or correct its address".to_owned(),
        }
    } else if holds(&["expired", "Expired"]) {
        format!("issue the {who}'s certificate anew: it has expired")
    } else if holds(&[
        "UnknownIssuer",
        "BadSignature",
        "UnknownCA",
        "unknown certificate authority",
        "NotValidForName",
        "not valid for name",
        "certificate",
    ]) {
        format!(
            "let both sides trust one CA (--tls-ca) and the {who}'s certificate name the host that is dialled"
        )
    } else if holds(&["lookup", "resolve", "Name or service", "no address"]) {
        "correct the name, or the name service".to_owned()
    } else if holds(&["refused"]) {
        format!("start the {who}, or correct the address: nothing listens there")
    } else if holds(&["in time", "silent", "within", "timed out"]) {
        format!("open the way to the {who}: a firewall or a dead host drops packets")
    } else {
        format!("look at the {who}'s log; one side may speak TLS and the other plaintext")
    };
    let detail = if message.is_empty() {
        format!("{who} answers {}", code_name(code))
    } else {
        message.to_owned()
    };
    (detail, fix)
}

fn leadership(rows: &[ReplicaRow], findings: &mut Findings) {
    let leaders: Vec<&ReplicaRow> = rows.iter().filter(|row| row.role == "leader").collect();
    match leaders.as_slice() {
        [] => findings.fault(
            "leader",
            "coordinator",
            "no replica that answers leads",
            "start a majority of the voters; name every replica in --coordinator; shards go on meanwhile",
        ),
        [leader] => {
            let voters = leader.voters.len();
            let text = format!("{} leads in term {} with {voters} voters", leader.node, leader.term);
            if voters < 3 {
                let fix = "run 3 voters in three zones; fewer are for development";
                findings.warning("leader", "coordinator", text, fix);
            } else {
                findings.ok("leader", "coordinator", text);
            }
        }
        several => {
            let names: Vec<&str> = several.iter().map(|row| row.node.as_str()).collect();
            findings.warning(
                "leader",
                "coordinator",
                format!("{} take themselves for the leader", names.join(" and ")),
                "look again: an election may be under way; two for longer are two fleets",
            );
        }
    }
    let fleets = fleets(rows);
    if fleets.len() > 1 {
        findings.fault(
            "fleet",
            "coordinator",
            format!("replicas belong to several fleets: {}", fleets.join(", ")),
            "keep the fleet of the highest generation; wipe the replicas of the others",
        );
    }
}

fn phase(row: &ReplicaRow, findings: &mut Findings) {
    let lag = row.commit_index.saturating_sub(row.applied_index);
    match row.phase.as_str() {
        "superseded" => findings.fault(
            "replica",
            &row.node,
            "it is superseded by a restored fleet and serves nothing",
            "stop it, empty its volume and start it again: it joins the restored fleet",
        ),
        "forming" | "empty" => findings.fault(
            "replica",
            &row.node,
            format!("its fleet is {}: it never opened", row.phase),
            "start every initial replica; the log of ordinal 0 names who is missing",
        ),
        _ if lag > LAG => findings.warning(
            "replica",
            &row.node,
            format!("it is {lag} entries behind"),
            "look at its disk and network; wipe it if it never catches up",
        ),
        _ => {}
    }
}
