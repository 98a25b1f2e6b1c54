//! Who may dial: only the holder of the lease.

use std::time::Duration;

use bigfleet_in_cluster::lease::{Elector, Leadership};
use tokio::sync::watch;

const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Whether this process leads.
#[derive(Clone, Debug)]
pub struct Lead {
    leadership: watch::Receiver<Leadership>,
    elector: Option<Elector>,
}

impl Lead {
    /// As an election has it.
    #[must_use]
    pub fn elected(elector: &Elector) -> Self {
        Self { leadership: elector.leadership(), elector: Some(elector.clone()) }
    }

    /// Without an election, as somebody says.
    #[must_use]
    pub const fn told(leadership: watch::Receiver<Leadership>) -> Self {
        Self { leadership, elector: None }
    }

    /// Whether this process leads at this moment.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        match &self.elector {
            Some(elector) => elector.is_leading(),
            None => *self.leadership.borrow() == Leadership::Leading,
        }
    }

    /// Whether another leads, or nobody does yet; not while we are unsure of it.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        *self.leadership.borrow() == Leadership::Standby
    }

    /// Returns when we may dial. Not while the API server is away: another may have the
    /// lease, and we cannot see it.
    pub async fn may_dial(&mut self) {
        loop {
            self.until(Leadership::Leading).await;
            if self.is_leading() {
                return;
            }
            // We were stopped for so long that our knowledge has run out; it is renewed
            // or revoked presently.
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns when another was seen with the lease. A lease that ran out unseen does
    /// not end a session: the shard would lose us, and nobody takes our place.
    pub async fn superseded(&mut self) {
        self.until(Leadership::Standby).await;
    }

    async fn until(&mut self, leadership: Leadership) {
        if self.leadership.wait_for(|now| *now == leadership).await.is_err() {
            // Whoever told has ended, and with it the process.
            std::future::pending::<()>().await;
        }
    }
}
