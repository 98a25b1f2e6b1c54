//! How much one shard is asked at once, whoever asks and whatever they ask.

use tokio::sync::Semaphore;

/// Readers of needs. A shard has places for 8 (shard chapter §15), and others look, too.
const NEEDS: usize = 4;

/// Places of one shard.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) needs: Semaphore,
}

impl Default for Places {
    fn default() -> Self {
        Self { needs: Semaphore::new(NEEDS) }
    }
}
