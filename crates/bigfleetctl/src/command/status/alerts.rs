//! What somebody should look at, of what can be seen from here. Alerts on history are
//! Prometheus's.

use serde::Serialize;

use super::{ShardState, Status};
use crate::{
    command::raft::fleets,
    when::{self, SECOND, STALE},
};

/// The coordinator's own limit (coordinator chapter §7).
const EXPIRED: i64 = 300 * SECOND;
/// A brake that is forgotten.
const PAUSED: i64 = 3600 * SECOND;
/// Seven days.
const CERTIFICATE: i64 = 7 * 86_400;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// `page` or `ticket`.
    pub level: &'static str,
    /// What is wrong.
    pub text: String,
}

/// Those of what was collected, the worst first.
#[must_use]
pub fn of(status: &Status) -> Vec<Alert> {
    let mut alerts = Vec::new();
    let mut alert = |level, text: String| alerts.push(Alert { level, text });
    replicas(status, &mut alert);
    for shard in &status.shards {
        one_shard(status, shard, &mut alert);
    }
    if let Some(expires) = status.certificate_expires {
        let left = expires.saturating_sub(status.now / SECOND);
        if left <= 0 {
            alert("page", "our own certificate has expired".to_owned());
        } else if left < CERTIFICATE {
            let span = when::span(left.saturating_mul(SECOND));
            alert("page", format!("our own certificate expires in {span}"));
        }
    }
    alerts.sort_by_key(|alert: &Alert| alert.level);
    alerts
}

fn replicas(status: &Status, alert: &mut impl FnMut(&'static str, String)) {
    let answered = || status.replicas.iter().filter(|replica| replica.error.is_none());
    if !answered().any(|replica| replica.role == "leader") {
        alert(
            "page",
            "no coordinator leads: admin calls and reports pause, shards go on".to_owned(),
        );
    }
    for replica in status.replicas.iter().filter(|replica| replica.error.is_some()) {
        alert("ticket", format!("replica at {} does not answer", replica.address));
    }
    for replica in answered().filter(|replica| replica.phase == "superseded") {
        let node = &replica.node;
        alert("page", format!("replica {node} is superseded by a restored fleet; wipe it"));
    }
    for replica in answered().filter(|replica| replica.phase == "forming") {
        alert("page", format!("replica {} is in a fleet that never opened", replica.node));
    }
    let fleets = fleets(&status.replicas);
    if fleets.len() > 1 {
        alert("page", format!("replicas belong to several fleets: {}", fleets.join(", ")));
    }
}

fn one_shard(status: &Status, shard: &ShardState, alert: &mut impl FnMut(&'static str, String)) {
    let (id, age) = (&shard.shard, status.now.saturating_sub(shard.heartbeat_unix_nanos));
    if shard.heartbeat_unix_nanos != 0 && age > STALE {
        let word = if age > EXPIRED { "expired" } else { "stale" };
        alert("page", format!("shard {id} is {word}: its last report is {} old", when::span(age)));
    }
    if let Some(report) = shard.report.as_ref().filter(|report| report.escalated > 0) {
        alert("ticket", format!("shard {id} has {} escalated shortfalls", report.escalated));
    }
    let held = status.now.saturating_sub(shard.mode_since_unix_nanos);
    let paused = shard.mode.as_deref() == Some("PAUSED");
    if paused && shard.mode_since_unix_nanos != 0 && held > PAUSED {
        alert("ticket", format!("shard {id} has been paused for {}", when::span(held)));
    }
}
