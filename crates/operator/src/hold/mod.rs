//! When not to send (§3.4): the rules, and the shell that looks at leases and the CRD.

mod decide;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_crds::keys;
use bigfleet_in_cluster::{Lane, Paced, lease, refusal};
use bigfleet_net::shutdown::Shutdown;
pub use decide::{Crd, Decision, DemandSource, Facts, Look, Loss, NotLive, Seen, decide};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// The lease of the pod controller, in the operator's own namespace.
pub const UPC_LEASE: &str = "bigfleet-unschedulable-pod-controller";

/// The definition whose end takes all requests along.
const CRD: &str = "capacityrequests.bigfleet.lucy.sh";

/// Between two looks at the lease.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A look that takes longer tells nothing: a roll-up must not wait for it.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// Looks at what the API server has to say about demand.
#[derive(Debug)]
pub struct Lookout {
    paced: Paced,
    namespace: String,
    source: DemandSource,
    seen: Mutex<Seen>,
    /// The definition that stood when it was last looked at.
    stood: Mutex<Option<String>>,
}

impl Lookout {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(paced: Paced, namespace: impl Into<String>, source: DemandSource) -> Self {
        Self {
            paced,
            namespace: namespace.into(),
            source,
            seen: Mutex::default(),
            stood: Mutex::default(),
        }
    }

    /// Looks at the lease again and again; `departures` tells how many requests have gone.
    pub async fn run(&self, departures: impl Fn() -> u64, shutdown: Shutdown) {
        if self.source == DemandSource::External {
            shutdown.requested().await;
            return;
        }
        let mut sight = lease::Sight::default();
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                _ = ticks.tick() => {}
            }
            // Counted before: what goes while we look was not seen with it.
            let then = departures();
            let look = self.look(&mut sight).await;
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match look {
                Some(look) => *seen = Seen { look: Some((look, then)), away: false },
                None => seen.away = true,
            }
        }
    }

    async fn look(&self, sight: &mut lease::Sight) -> Option<Look> {
        let read = lease::read(&self.paced, &self.namespace, UPC_LEASE);
        match timeout(LOOK_WITHIN, read).await.ok()? {
            Ok(None) => Some(Look::Absent),
            Ok(Some(record)) => {
                let age = sight.look(&record, Timestamp::now(), Instant::now());
                let synced = record.annotations.get(keys::SYNCED).cloned();
                Some(Look::Found { holder: record.holder, synced, age })
            }
            Err(error) if refusal::is_passing(&error) => None,
            Err(error) => Some(Look::Refused(error.to_string())),
        }
    }

    /// Whether the demand source is alive, for all that was seen.
    pub fn source(&self, departures: u64) -> Result<(), NotLive> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).judge(self.source, departures)
    }

    /// Looks at the definition now. That it was replaced is told once.
    pub async fn crd(&self) -> Crd {
        let read = self.paced.call(Lane::Lease, |client| async move {
            Api::<CustomResourceDefinition>::all(client).get_opt(CRD).await
        });
        match timeout(LOOK_WITHIN, read).await {
            Ok(Ok(Some(crd))) if crd.metadata.deletion_timestamp.is_none() => {
                let mut stood = self.stood.lock().unwrap_or_else(PoisonError::into_inner);
                let before = std::mem::replace(&mut *stood, crd.metadata.uid.clone());
                if before.is_some() && before != crd.metadata.uid {
                    Crd::Replaced
                } else {
                    Crd::Stands
                }
            }
            Ok(Ok(_)) => Crd::Going,
            Ok(Err(_)) | Err(_) => Crd::Unknown,
        }
    }
}

/// How everybody holds it.
pub type SharedLookout = Arc<Lookout>;
