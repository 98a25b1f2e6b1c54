use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many keys are worked on at once, machines and profiles together.
pub const SLOTS: usize = 32;

/// The handler slots that all pumps of the process share. Clones share one state.
#[derive(Debug, Clone)]
pub struct Slots {
    free: Arc<Semaphore>,
    total: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self::new(SLOTS)
    }
}

impl Slots {
    /// So many, at least one.
    #[must_use]
    pub fn new(total: usize) -> Self {
        let total = total.max(1);
        Self { free: Arc::new(Semaphore::new(total)), total }
    }

    /// How many are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.total - self.free.available_permits().min(self.total)
    }

    /// Waits for one. None only when the runtime goes down.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().acquire_owned().await.ok()
    }
}
