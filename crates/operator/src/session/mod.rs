//! The session with the shard (§2): dialled by us, kept alive, dialled again.

mod backoff;
mod codec;
mod downstream;
mod lead;
mod liveness;
mod once;
mod outgoing;

use std::{sync::Arc, sync::atomic::AtomicU64, time::Duration};

use backoff::Backoff;
use bigfleet_in_cluster::events::Recorder;
use bigfleet_net::{shutdown::Shutdown, tls::Security};
pub use downstream::{Downstream, Render};
use k8s_openapi::api::core::v1::ObjectReference;
pub use lead::Lead;
pub use outgoing::{Demand, Frame, OUTBOX, ReclaimAcks};
use tonic::Code;

use crate::{ack::Pool, metrics::Metrics, pod_status::Needs, rollup::Cycle};

/// What this operator does beyond the base messages.
const FEATURES: [&str; 2] = ["final-reclaim-ack", "need-status"];

/// What we speak.
const PROTOCOL: &str = "v1alpha1";

/// With whom, as whom, how often.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose demand it is.
    pub cluster_id: String,
    /// `host:port` of one shard.
    pub shard_addr: String,
    /// Our certificate and whom we believe.
    pub security: Security,
    /// Between two roll-ups.
    pub interval: Duration,
}

/// What a session works with.
pub struct Parts {
    /// With whom, as whom, how often.
    pub settings: Settings,
    /// Whether we may dial.
    pub lead: Lead,
    /// Where demand comes from.
    pub cycle: Arc<Cycle>,
    /// Who stamps what was accepted.
    pub pool: Arc<Pool>,
    /// How needs stand.
    pub needs: Arc<Needs>,
    /// Who makes bootstrap blobs.
    pub render: Arc<dyn Render>,
    /// Who takes the rest.
    pub downstream: Arc<dyn Downstream>,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Where it tells.
    pub events: Recorder,
    /// What events about us regard.
    pub ourselves: ObjectReference,
}

/// Keeps one session with the shard for as long as we lead.
pub struct Session {
    parts: Parts,
    /// Counts frames over all sessions.
    received: AtomicU64,
}

impl Session {
    /// Not dialled yet.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self { parts, received: AtomicU64::new(0) }
    }

    /// Dials and dials again until the stop is asked for.
    pub async fn run(&self, shutdown: Shutdown) {
        let mut backoff = Backoff::default();
        let mut lead = self.parts.lead.clone();
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                () = lead.may_dial() => {}
            }
            let (end, status) = self.once(&mut lead, &shutdown).await;
            if shutdown.is_requested() {
                return;
            }
            self.parts.metrics.session_reconnects.inc();
            let random =
                getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX));
            let wait = backoff.after(&end, random);
            let (retry_ms, lived_s) = (wait.as_millis(), end.lived.as_secs());
            match end.code {
                Some(Code::PermissionDenied) => {
                    tracing::error!(status, retry_ms, "the shard refuses our identity");
                }
                Some(Code::Aborted) => {
                    tracing::error!(
                        status,
                        retry_ms,
                        "another operator took this cluster's session"
                    );
                }
                _ => tracing::warn!(status, lived_s, retry_ms, "session ended"),
            }
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("settings", &self.parts.settings).finish_non_exhaustive()
    }
}
