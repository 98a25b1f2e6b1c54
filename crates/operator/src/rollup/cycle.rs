//! The shell around the ledger: follows the cache, decides whether to send, builds.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bigfleet_in_cluster::{Store, events::Recorder, store::State};
use bigfleet_model::Fingerprint;
use bigfleet_net::shutdown::Shutdown;
use hashbrown::HashSet;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::watch;

use super::{
    identity::NeedIdentity,
    ledger::Ledger,
    request::{Phase, Request},
    stamp::Stamps,
};
use crate::{
    ack::{Job, Pool},
    hold::{Crd, Decision, Facts, Lookout, Loss, decide},
    metrics::{HoldReason, Metrics, RollupPhase},
    pod_status::Needs,
    session::Demand,
    status::StatusWriter,
};

/// The profiles that roll-ups name.
pub type Demanded = Arc<HashSet<Fingerprint, foldhash::fast::RandomState>>;

/// Builds roll-ups from the cache. Share it in an `Arc`.
#[derive(Debug)]
pub struct Cycle {
    store: Store<Request>,
    ledger: Mutex<Ledger>,
    lookout: Arc<Lookout>,
    metrics: Arc<Metrics>,
    events: Recorder,
    /// What events about us regard.
    ourselves: ObjectReference,
    sending: Mutex<Sending>,
    demanded: watch::Sender<Demanded>,
    needs: Arc<Needs>,
}

#[derive(Debug, Default)]
struct Sending {
    stamps: Stamps,
    last_sent: Option<usize>,
    held: Option<HoldReason>,
    loss: Loss,
    /// Of the needs that were last told.
    shape: Option<(u64, bool)>,
}

/// What a cycle works with.
#[derive(Debug)]
pub struct Parts {
    /// The cache of requests.
    pub store: Store<Request>,
    /// Looks at leases and the CRD.
    pub lookout: Arc<Lookout>,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Where it tells.
    pub events: Recorder,
    /// What events about us regard.
    pub ourselves: ObjectReference,
    /// How needs stand.
    pub needs: Arc<Needs>,
}

impl Cycle {
    /// For the cluster of this id.
    #[must_use]
    pub fn new(cluster: &str, parts: Parts) -> Self {
        let Parts { store, lookout, metrics, events, ourselves, needs } = parts;
        Self {
            store,
            ledger: Mutex::new(Ledger::new(cluster)),
            lookout,
            metrics,
            events,
            ourselves,
            sending: Mutex::default(),
            demanded: watch::Sender::default(),
            needs,
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A step that panicked half-way is a defect; the process ends with its task.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the cache until the stop is asked for.
    pub async fn follow(&self, shutdown: Shutdown) {
        let mut feed = self.store.changes();
        loop {
            let change = tokio::select! {
                () = shutdown.requested() => return,
                change = feed.next() => change,
            };
            let Some(change) = change else { return };
            let mut ledger = self.ledger();
            ledger.apply(&change);
            // A burst is taken in at once; who builds waits for no more than that.
            for _ in 0..1_000 {
                let Some(change) = feed.try_next() else { break };
                ledger.apply(&change);
            }
        }
    }

    /// How many requests have gone or changed, ever.
    #[must_use]
    pub fn departures(&self) -> u64 {
        self.ledger().departures()
    }

    /// Requests taken in.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.ledger().requests()
    }

    /// The profiles that roll-ups name, and every change of them.
    #[must_use]
    pub fn demanded(&self) -> watch::Receiver<Demanded> {
        self.demanded.subscribe()
    }

    /// One roll-up, unless it is held.
    pub async fn next(&self) -> Option<Demand> {
        let begun = Instant::now();
        let mut crd = None;
        loop {
            let facts = self.facts(crd);
            match decide(&facts) {
                Decision::Send => {
                    self.hold(None);
                    return Some(self.build(begun));
                }
                Decision::LookAtCrd => crd = Some(self.lookout.crd().await),
                Decision::Hold(reason, why) => {
                    self.hold(Some((reason, why)));
                    return None;
                }
            }
        }
    }

    fn facts(&self, crd: Option<Crd>) -> Facts {
        let mut sending = self.sending();
        let last_sent = sending.last_sent;
        let cache = self.store.state();
        let gone = cache == State::Missing || matches!(crd, Some(Crd::Going | Crd::Replaced));
        let ledger = self.ledger();
        let now = tokio::time::Instant::now();
        Facts {
            lost: sending.loss.look(gone, ledger.requests(), ledger.departures(), now),
            cache,
            ledger_synced: ledger.is_synced(),
            source: self.lookout.source(ledger.departures()),
            requests: ledger.requests(),
            last_sent,
            crd,
        }
    }

    fn build(&self, begun: Instant) -> Demand {
        let mut sending = self.sending();
        let mut ledger = self.ledger();
        let listed = Instant::now();
        let now = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        let roll_up = ledger.build(sending.stamps.next(now));
        let candidates = ledger.candidates();
        if sending.shape.replace(ledger.shape()) != Some(ledger.shape()) {
            let profile = |need: &Arc<NeedIdentity>| need.profile().fingerprint().clone();
            self.demanded.send_replace(Arc::new(ledger.identities().map(profile).collect()));
        }
        self.needs.named(ledger.identities().map(|need| (need.fingerprint(), need.group())));
        drop(ledger);
        sending.last_sent = Some(roll_up.requests());
        sending.loss = Loss::default();
        let built = Instant::now();
        self.metrics.rollup_phase(RollupPhase::List, listed - begun);
        self.metrics.rollup_phase(RollupPhase::Build, built - listed);
        self.metrics.rollup_duration.observe((built - begun).as_secs_f64());
        let gauge = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        self.metrics.rollup_needs.set(gauge(roll_up.needs()));
        self.metrics.rollup_bytes.set(gauge(roll_up.encoded_len()));
        Demand { roll_up, candidates }
    }

    fn hold(&self, held: Option<(HoldReason, String)>) {
        let reason = held.as_ref().map(|(reason, _)| *reason);
        let before = std::mem::replace(&mut self.sending().held, reason);
        if before == reason {
            return;
        }
        self.metrics.hold(reason);
        match held {
            Some((reason, why)) => {
                tracing::warn!(%reason, why, "roll-ups are held; the shard keeps its demand");
                let message = format!("roll-ups are held ({reason}): {why}");
                self.events.warning(self.ourselves.clone(), "RollupHeld", message);
            }
            None => tracing::info!("roll-ups are sent again"),
        }
    }

    /// Another replica speaks for this cluster, and it is its word that counts: a hold of ours
    /// that was never lifted would sound an alarm for ever.
    pub fn stand_by(&self) {
        self.sending().held = None;
        self.metrics.hold(None);
        for phase in Phase::ALL {
            self.metrics.capacity_requests(*phase, 0);
        }
    }

    /// Tells people and the API server of requests that are not understood, and counts;
    /// for whoever leads.
    pub fn tend(&self, pool: &Pool, writer: &StatusWriter) {
        let (news, misfits, requests, acknowledged) = {
            let mut ledger = self.ledger();
            let misfits: Vec<_> = ledger.misfits().cloned().collect();
            (ledger.take_news(), misfits, ledger.requests(), ledger.acknowledged())
        };
        for one in news {
            let (key, generation, why) = (&one.key, one.generation, &one.why);
            self.metrics.request_skipped(why.kind);
            tracing::warn!(%key, generation, %why, "request skipped: it counts for nothing");
        }
        self.metrics.capacity_requests(Phase::Acknowledged, acknowledged);
        self.metrics.capacity_requests(Phase::Pending, requests.saturating_sub(acknowledged));
        pool.offer(misfits.into_iter().filter_map(|key| {
            let uid = self.store.get(&key)?.uid;
            Some(Job::Translatable(key, uid))
        }));
        writer.prune();
    }
}

/// Between two rounds of [`Cycle::tend`].
pub const TEND_EVERY: Duration = Duration::from_secs(5);
