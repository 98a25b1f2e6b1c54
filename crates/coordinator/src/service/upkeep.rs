//! What happens every second: readiness, expiry, transfers given up, gauges.

use std::sync::{Arc, PoisonError};

use bigfleet_net::{readiness::Readiness, shutdown::Shutdown};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{COMMIT_TIMEOUT, Coordinator, EVERY, Leadership, Phase, Replica, guard::Led};
use crate::reports::batches;

/// What `/readyz` says while nobody leads.
pub const NO_LEADER: &str = "no raft leader observed";

impl<R: Replica> Coordinator<R> {
    /// Keeps house until the stop. Ready means that somebody leads.
    pub async fn keep(self: Arc<Self>, readiness: Readiness, shutdown: Shutdown) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.tick(&readiness).await,
                () = shutdown.token().cancelled() => return,
            }
        }
    }

    /// One second's upkeep.
    pub async fn tick(&self, readiness: &Readiness) {
        let leadership = self.replica.leadership();
        match self.replica.ailing() {
            _ if !leadership.observed() => readiness.set_not_ready(NO_LEADER),
            Some(why) => readiness.set_not_ready(why),
            None => readiness.set_ready(),
        }
        let superseded = matches!(self.replica.phase(), Phase::Superseded { .. });
        self.metrics.superseded.set(i64::from(superseded));
        self.metrics.raft_term.set(self.replica.status().term);
        self.replica.look(|state| self.metrics.publish_state(state));
        match leadership {
            Leadership::Leader { term } if self.replica.phase() == Phase::Open => {
                self.lead_on(term).await;
            }
            Leadership::Leader { .. } | Leadership::Follower { .. } => {
                *self.soft.lock().unwrap_or_else(PoisonError::into_inner) = None;
                self.metrics.deposed();
            }
        }
    }

    async fn lead_on(&self, term: i64) {
        let ends = self.soft(term, |reports, state, now| {
            reports.expire(state, now);
            let ends = reports.give_up(state, now);
            self.metrics.publish(reports, state, now);
            ends
        });
        let until = Instant::now() + COMMIT_TIMEOUT;
        for command in batches(ends.unwrap_or_default()) {
            if let Err(status) = self.commit(Led { term, until }, command).await {
                tracing::warn!(%status, "transfers not given up; tried again in a second");
                return;
            }
        }
    }
}
