//! `bigfleet.v1alpha1.Coordinator` (coordinator chapter §3) over any [`Replica`].
//!
//! All RPCs but RaftStatus are the leader's. The order of checks is the wire chapter's:
//! who does not lead says so before anything else; then ReportShard looks at its
//! arguments and at its caller, all others at their caller first. `guard` holds that
//! order, `rpc` the table of RPCs, one file each what they do.

mod admin;
mod guard;
mod lists;
mod membership;
mod rebalance;
mod replica;
mod report;
mod rpc;
mod snapshot;
mod status;
mod upkeep;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_net::message_limits;
use bigfleet_wire::v1alpha1::coordinator_server::CoordinatorServer;
pub use rebalance::Rebalancing;
pub use replica::{Joiner, LeaderHint, Leadership, Phase, Replica, ReplicaError, Snapshot};
use tokio::time::Instant;
use tonic::Status;
pub use upkeep::NO_LEADER;

use crate::{
    metrics::Metrics,
    reports::{LivenessLimits, Now, Reports},
    state::State,
    wall,
};

/// How often a leader looks at what changes without a call.
const EVERY: Duration = Duration::from_secs(1);

/// A commit that takes longer is given up; whether it counts is then unknown.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The service of one replica.
#[derive(Debug)]
pub struct Coordinator<R> {
    replica: Arc<R>,
    limits: LivenessLimits,
    metrics: Arc<Metrics>,
    started: Instant,
    /// Of the present leadership; none while another replica leads.
    soft: Mutex<Option<Reports>>,
}

impl<R: Replica> Coordinator<R> {
    /// Serves this replica.
    #[must_use]
    pub fn new(replica: Arc<R>, limits: LivenessLimits, metrics: Arc<Metrics>) -> Self {
        Self { replica, limits, metrics, started: Instant::now(), soft: Mutex::new(None) }
    }

    /// For a gRPC server.
    #[must_use]
    pub fn into_service(self: Arc<Self>) -> CoordinatorServer<Self> {
        message_limits!(CoordinatorServer::from_arc(self))
    }

    /// The soft state of the leadership of `term`, with the state as it is applied. A
    /// newer leadership begins with nothing; one that is over has none.
    fn soft<T>(
        &self,
        term: i64,
        use_it: impl FnOnce(&mut Reports, &State, Now) -> T,
    ) -> Result<T, Status> {
        let now = self.now();
        self.replica.look(|state| {
            let mut soft = self.soft.lock().unwrap_or_else(PoisonError::into_inner);
            if soft.as_ref().is_some_and(|reports| reports.term() > term) {
                return Err(status::not_leader(None));
            }
            let reports = match soft.take().filter(|reports| reports.term() == term) {
                Some(reports) => reports,
                None => {
                    let seed = getrandom::u64();
                    let seed = seed.map_err(|error| Status::unavailable(error.to_string()))?;
                    Reports::new(term, self.limits, seed).led_since(now)
                }
            };
            let reports = soft.insert(reports);
            let result = use_it(reports, state, now);
            self.metrics.count(reports.take_tally());
            Ok(result)
        })
    }

    fn now(&self) -> Now {
        let unix_nanos = i64::try_from(wall::since_epoch().as_nanos()).unwrap_or(i64::MAX);
        Now { monotonic: self.started.elapsed(), unix_nanos }
    }
}
