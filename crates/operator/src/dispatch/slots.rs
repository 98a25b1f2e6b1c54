use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::{Inflight, Metrics};

/// How many keys are worked on at once, machines and profiles together.
pub const SLOTS: usize = 32;

/// The handler slots that all pumps of the process share. Clones share one state.
#[derive(Debug, Clone)]
pub struct Slots {
    free: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Slots {
    /// All free.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { free: Arc::new(Semaphore::new(SLOTS)), metrics }
    }

    /// Counts a handler for as long as it works.
    pub(super) fn working(&self) -> Inflight {
        Inflight::of(&self.metrics.dispatch_inflight)
    }

    /// Waits for one. None only when the runtime goes down.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().acquire_owned().await.ok()
    }
}
