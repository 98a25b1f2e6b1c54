//! What processes say of themselves in their metrics: version, certificate.

use futures_util::future::join_all;

use super::{MetricsArgs, finding::Findings, own};
use crate::{fleet::Fleet, http};

const OURS: &str = env!("CARGO_PKG_VERSION");

/// Which kind of process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) enum Kind {
    Shard,
    Replica,
}

/// A process that answered.
#[derive(Debug, Clone)]
pub(in crate::command) struct Process {
    pub(in crate::command) id: String,
    pub(in crate::command) addr: String,
    pub(in crate::command) kind: Kind,
}

impl Process {
    /// Where its metrics are.
    pub(in crate::command) fn metrics(&self, args: &MetricsArgs) -> String {
        let port = if self.kind == Kind::Shard { 8780 } else { 8790 };
        // A replica that was resolved is shown as name (address).
        let addr = self.addr.split(' ').next().unwrap_or_default();
        let given = args.addresses().get(self.id.as_str()).map(|addr| (*addr).to_owned());
        given.unwrap_or_else(|| http::usual(addr, port))
    }
}

pub(super) async fn check(
    fleet: &Fleet,
    processes: &[Process],
    args: &MetricsArgs,
    findings: &mut Findings,
) {
    let read = |process: &Process| {
        let addr = process.metrics(args);
        async move { (http::get(&addr, "/metrics", fleet.timeout).await, addr) }
    };
    let pages = join_all(processes.iter().map(read)).await;
    for (process, (page, addr)) in processes.iter().zip(pages) {
        let id = process.id.as_str();
        match page {
            Err(problem) => findings.skipped(
                "version",
                id,
                format!("no metrics at {addr}: {problem}"),
                format!("say where they are with --metrics {id}=host:port"),
            ),
            Ok(page) => one(id, &page, fleet.security.tls().is_some(), findings),
        }
    }
}

fn one(id: &str, page: &str, mtls: bool, findings: &mut Findings) {
    match http::label(page, "bigfleet_build_info", "version") {
        Some(OURS) => findings.ok("version", id, OURS),
        Some(other) => findings.fault(
            "version",
            id,
            format!("it runs {other}, bigfleetctl is {OURS}"),
            "finish the upgrade, receivers first: coordinator, shards, operators; use the bigfleetctl of the fleet",
        ),
        None => findings.warning("version", id, "it does not say which", "upgrade it"),
    }
    if let Some(expires) = http::value(page, "bigfleet_tls_cert_expiry_timestamp_seconds") {
        // Seconds of this era are exact in a double.
        #[allow(clippy::cast_possible_truncation, reason = "checked by the range of dates")]
        own::expiry(id, expires as i64, findings);
    }
    if mtls && http::value(page, "bigfleet_tls_enabled") == Some(0.0) {
        findings.fault(
            "transport",
            id,
            "it speaks plaintext on some edge",
            "start it with --tls-cert, --tls-key, --tls-ca and --require-tls",
        );
    }
}
