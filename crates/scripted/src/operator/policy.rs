//! How an operator answers.

use std::{fmt, sync::Arc, time::Duration};

use bigfleet_wire::v1alpha1::{BootstrapRequest, ReclaimInstruction};

/// The answer to one `BootstrapRequest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bootstrap {
    /// A small blob that no other request gets, without a limit.
    Unique,
    /// This blob.
    Deliver {
        /// `user_data`.
        blob: Vec<u8>,
        /// `ttl_seconds`; 0 is no limit.
        ttl_seconds: i64,
    },
    /// `error`.
    Refuse(String),
    /// No answer.
    Silent,
    /// A unique blob after this time, on the session that asked, if it still
    /// stands.
    Late(Duration),
}

/// The answer to one `ReclaimInstruction`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reclaim {
    /// Cordons and acks at once; the final ack follows after this time. Longer
    /// than the grace, it follows at the grace's end with nothing drained.
    Drain(Duration),
    /// Cordons and acks at once; the final ack only by
    /// [`Operator::finish_reclaim`](super::Operator::finish_reclaim).
    NoFinal,
    /// No ack of either kind, nothing cordoned.
    Silent,
    /// Cordons and acks this late, then drains.
    LateFirstAck {
        /// Until the first ack.
        after: Duration,
        /// From there to the final ack.
        drain: Duration,
    },
    /// Found none of the nodes: acks at once with `nodes_started` 0, and never
    /// again.
    NothingToDo,
}

/// Chooses by request; see [`Operator::on_bootstrap`](super::Operator::on_bootstrap).
#[derive(Clone)]
pub(super) struct Policies {
    pub(super) bootstrap: Arc<dyn Fn(&BootstrapRequest) -> Bootstrap + Send + Sync>,
    pub(super) reclaim: Arc<dyn Fn(&ReclaimInstruction) -> Reclaim + Send + Sync>,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            bootstrap: Arc::new(|_| Bootstrap::Unique),
            reclaim: Arc::new(|_| Reclaim::Drain(Duration::ZERO)),
        }
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies").finish_non_exhaustive()
    }
}
