//! The shard as its coordinator's client sees it, and the little that a
//! coordinator changes in it (§14). Nothing here waits for a coordinator, and a
//! shard whose client nobody starts lacks nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use bigfleet_engine::{Census, Count, Shortage};
use bigfleet_model::{ClusterId, MachineState};
use tokio::time::Instant;

use crate::{holdings::Domain, metrics::ReportOutcome, shard::Shard, shared::SharedSide};

/// A [`Standing`] is counted at most this often: it reads every machine while the
/// cycle waits.
const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// How a shard stands, as reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Machines in any state.
    pub total: usize,
    /// Those Idle or Speculative.
    pub free: usize,
    /// Machines by instance type.
    pub by_instance_type: BTreeMap<String, usize>,
    /// Machines by zone.
    pub by_zone: BTreeMap<String, usize>,
    /// What machines from elsewhere could help: at most 100 rows, priority desc.
    pub shortfalls: Vec<Shortage>,
}

/// The last count, and when it was made.
type Counted = tokio::sync::Mutex<Option<(Instant, Arc<Standing>)>>;

/// One shard, seen from its coordinator's client. Clones share everything.
#[derive(Clone)]
pub struct ReportSide {
    shard: Arc<Shard>,
    counted: Arc<Counted>,
    domains: Arc<Mutex<BTreeSet<Domain>>>,
}

impl ReportSide {
    pub(crate) fn new(shard: Arc<Shard>) -> Self {
        Self { shard, counted: Arc::default(), domains: Arc::default() }
    }

    /// The shard's stable id.
    #[must_use]
    pub fn shard_id(&self) -> &str {
        &self.shard.options.id
    }

    /// The epoch of this process.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.shard.epoch
    }

    /// The wall's clock, in unix nanoseconds.
    #[must_use]
    pub fn unix_nanos(&self) -> i64 {
        self.shard.clock.wall()
    }

    /// How the shard stands: as of now, or of less than a second ago.
    pub async fn standing(&self) -> Arc<Standing> {
        let mut counted = self.counted.lock().await;
        if let Some((at, standing)) = &*counted
            && at.elapsed() < COUNTED_EVERY
        {
            return standing.clone();
        }
        let (census, shortfalls) = {
            let decider = self.shard.decider.read().await;
            (decider.engine.census(), decider.ledger.reported())
        };
        let standing = Arc::new(Standing::of(census, shortfalls));
        *counted = Some((Instant::now(), standing.clone()));
        standing
    }

    /// The part that shares a provider with others, if it does.
    #[must_use]
    pub fn shared(&self) -> Option<SharedSide> {
        SharedSide::of(&self.shard)
    }

    /// Clusters that this shard serves, in order: those that sent anything since it
    /// started, or have a session or machines. With a shared provider, those that it
    /// holds, and those whose operators are here and would be served.
    #[must_use]
    pub fn clusters(&self) -> BTreeSet<ClusterId> {
        let mut clusters: BTreeSet<ClusterId> =
            self.shard.sessions.connected().into_iter().collect();
        if let Some(shared) = self.shared() {
            let holdings = shared.holdings();
            clusters.extend(holdings.held().into_iter().flat_map(|held| held.clusters.clone()));
            return clusters;
        }
        clusters.extend(self.shard.needs.views().into_iter().map(|view| view.cluster));
        clusters.extend(self.shard.configured.load().keys().cloned());
        clusters
    }

    /// Highest coordinator term seen; 0 before the first.
    #[must_use]
    pub fn coordinator_term(&self) -> i64 {
        self.shard.coordinator_term.load(Ordering::Relaxed)
    }

    /// A coordinator of this term was heard. The mark never falls.
    pub fn set_coordinator_term(&self, term: i64) {
        self.shard.coordinator_term.fetch_max(term, Ordering::Relaxed);
    }

    /// Writes down that the domain is this shard's; again changes nothing. With its
    /// own provider scope that filters nothing: what the provider lists is ours.
    pub fn assign_domain(&self, domain: Domain) {
        self.lock_domains().insert(domain);
    }

    /// Writes down that the domain is not this shard's; again changes nothing.
    pub fn unassign_domain(&self, domain: &Domain) {
        self.lock_domains().remove(domain);
    }

    /// Domains assigned since the process started.
    #[must_use]
    pub fn domains(&self) -> BTreeSet<Domain> {
        self.lock_domains().clone()
    }

    /// A report went so.
    pub fn reported(&self, outcome: ReportOutcome) {
        self.shard.metrics.coordinator_report(outcome);
    }

    fn lock_domains(&self) -> MutexGuard<'_, BTreeSet<Domain>> {
        self.domains.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    fn of(census: Census, shortfalls: Vec<Shortage>) -> Self {
        let mut standing = Self {
            by_instance_type: counts(census.by_instance_type),
            by_zone: counts(census.by_zone),
            shortfalls,
            ..Self::default()
        };
        for ((state, ..), count) in census.by_state {
            standing.total += count.machines;
            if matches!(state, MachineState::Idle | MachineState::Speculative) {
                standing.free += count.machines;
            }
        }
        standing
    }
}

fn counts(counts: BTreeMap<String, Count>) -> BTreeMap<String, usize> {
    counts.into_iter().map(|(name, count)| (name, count.machines)).collect()
}
