//! How much load.

use std::{fmt, sync::Arc, time::Duration};

use bigfleet_net::tls::Security;

use crate::Error;

/// Streams that a server takes on one connection; the next one would wait
/// without a word.
const STREAMS_PER_CONNECTION: usize = 200;

/// A load, before it begins.
#[derive(Clone)]
pub struct LoadOptions {
    /// The shard.
    pub addr: String,
    /// Operators, each for a cluster of its own.
    pub sessions: usize,
    /// Sessions that share a connection, 1 to 200.
    pub sessions_per_connection: usize,
    /// Over all sessions.
    pub roll_ups_per_second: f64,
    /// How long roll-ups are sent before anything counts.
    pub warm_up: Duration,
    /// How long roll-ups are sent and measured.
    pub duration: Duration,
    /// Needs of one roll-up.
    pub needs_per_roll_up: usize,
    /// Needs that change from one roll-up to the next, of each thousand.
    pub churn_per_mille: u64,
    /// From a reclaim's first ack to its final one.
    pub drain: Duration,
    /// How long opening all sessions, and afterwards the last answers, may take.
    pub patience: Duration,
    /// Connections being opened at once.
    pub dials: usize,
    /// Clusters are named by this and a number.
    pub cluster_prefix: String,
    /// Decides all demand.
    pub seed: u64,
    security: Arc<dyn Fn(&str) -> Security + Send + Sync>,
}

impl LoadOptions {
    /// 1,000 sessions that send 500 roll-ups a second of 20 needs each for 10 s,
    /// in plaintext.
    #[must_use]
    pub fn new(addr: &str) -> Self {
        Self {
            addr: addr.to_owned(),
            sessions: 1_000,
            sessions_per_connection: 100,
            roll_ups_per_second: 500.0,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(10),
            needs_per_roll_up: 20,
            churn_per_mille: 50,
            drain: Duration::ZERO,
            patience: Duration::from_secs(60),
            dials: 64,
            cluster_prefix: "load".to_owned(),
            seed: 1,
            security: Arc::new(|_| Security::Plaintext),
        }
    }

    /// How the operator of each cluster talks. Under mTLS a connection has one
    /// identity, so sessions must not share any.
    #[must_use]
    pub fn security(mut self, of: impl Fn(&str) -> Security + Send + Sync + 'static) -> Self {
        self.security = Arc::new(of);
        self
    }

    pub(super) fn security_of(&self, cluster: &str) -> Security {
        (self.security)(cluster)
    }

    pub(super) fn cluster(&self, session: usize) -> String {
        format!("{}-{session:05}", self.cluster_prefix)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |option, problem: String| Err(Error::Option { option, problem });
        if !(1..=STREAMS_PER_CONNECTION).contains(&self.sessions_per_connection) {
            let problem = format!("give 1 to {STREAMS_PER_CONNECTION}: a server takes no more");
            return wrong("sessions_per_connection", problem);
        }
        if !(self.roll_ups_per_second.is_finite() && self.roll_ups_per_second > 0.0) {
            return wrong("roll_ups_per_second", "give a positive rate".to_owned());
        }
        if self.sessions == 0 || self.dials == 0 {
            return wrong("sessions and dials", "give at least 1".to_owned());
        }
        let mtls = self.security_of(&self.cluster(0)).tls().is_some();
        if mtls && self.sessions_per_connection > 1 {
            let problem = "under mTLS give 1: a connection has one identity".to_owned();
            return wrong("sessions_per_connection", problem);
        }
        Ok(())
    }
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("addr", &self.addr)
            .field("sessions", &self.sessions)
            .field("sessions_per_connection", &self.sessions_per_connection)
            .field("roll_ups_per_second", &self.roll_ups_per_second)
            .field("duration", &self.duration)
            .field("needs_per_roll_up", &self.needs_per_roll_up)
            .field("churn_per_mille", &self.churn_per_mille)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
