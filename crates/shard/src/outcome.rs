//! What became of an action (shard chapter §7, §10).

use bigfleet_engine::ActionKind;

use crate::label::labels;

labels! {
    /// What becomes of a decision at the rails.
    Disposition {
        /// Queued; an [`Outcome`] follows.
        Decided = "decided",
        /// Withheld by the kill switch.
        Suppressed = "suppressed",
        /// Withheld by shadow mode.
        DryRun = "dryrun",
    }
}

labels! {
    /// How the execution of an action ended.
    Outcome {
        /// Done.
        Success = "success",
        /// The provider knows a newer token; checked first.
        Fenced = "fenced",
        /// Deadline or shutdown.
        CtxCanceled = "ctx_canceled",
        /// The operator is absent.
        NoSession = "no_session",
        /// The operator answered with an error.
        BlobError = "blob_error",
        /// The operator did not answer in time.
        BlobTimeout = "blob_timeout",
        /// Any other code of the provider.
        ProviderError = "provider_error",
        /// The ack fails the invariants.
        AckRejected = "ack_rejected",
        /// The state machine refused.
        TransitionError = "transition_error",
        /// Found Idle after Configure; benign.
        TransitionRacedToIdle = "transition_raced_to_idle",
        /// The machine is no longer in the state the action starts from.
        StaleState = "stale_state",
        /// The machine is gone.
        InventoryMiss = "inventory_miss",
        /// The need's profile is gone.
        MissingProfile = "missing_profile",
        /// The last good reconcile is too old to evict on.
        StaleInventory = "stale_inventory",
        /// Too many machines disappeared at once.
        RemovalsHeld = "removals_held",
        /// Instruction sent, provider not called yet: the decision stays open.
        ReclaimWait = "reclaim_wait",
        /// A bug.
        Other = "other",
    }
}

impl Outcome {
    /// Whether the decision is over with it.
    #[must_use]
    pub const fn closes(self) -> bool {
        !matches!(self, Self::ReclaimWait)
    }
}

labels! {
    /// The five actions by name.
    Kind {
        /// Idle → Configured.
        Bootstrap = "Bootstrap",
        /// Speculative → Configured.
        Provision = "Provision",
        /// Configured → Idle, for nobody needs it.
        Reclaim = "Reclaim",
        /// Configured → Idle, for somebody more important.
        Preempt = "Preempt",
        /// Idle → Speculative.
        Delete = "Delete",
    }
}

impl From<&ActionKind> for Kind {
    fn from(kind: &ActionKind) -> Self {
        match kind {
            ActionKind::Bootstrap(_) => Self::Bootstrap,
            ActionKind::Provision(_) => Self::Provision,
            ActionKind::Reclaim { .. } => Self::Reclaim,
            ActionKind::Preempt { .. } => Self::Preempt,
            ActionKind::Delete => Self::Delete,
        }
    }
}
