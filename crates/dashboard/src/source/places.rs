//! How much one shard is asked at once, whoever asks and whatever they ask.

use tokio::sync::Semaphore;

/// Readers of needs. A shard has places for 8 (shard chapter §15), and others look, too.
const NEEDS: usize = 4;

/// Other questions.
const CALLS: usize = 16;

/// Places of one shard.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) needs: Semaphore,
    pub(super) calls: Semaphore,
}

impl Default for Places {
    fn default() -> Self {
        let [needs, calls] = [NEEDS, CALLS].map(Semaphore::new);
        Self { needs, calls }
    }
}
