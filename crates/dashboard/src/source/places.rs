//! How much one shard is asked at once, whoever asks and whatever they ask.

use tokio::sync::Semaphore;

/// Readers of needs. A shard has places for 8 (shard chapter §15), and others look, too.
const NEEDS: usize = 4;

/// Readers of decisions.
const DECISIONS: usize = 4;

/// Other questions.
const CALLS: usize = 16;

/// Places of one shard.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) needs: Semaphore,
    pub(super) decisions: Semaphore,
    pub(super) calls: Semaphore,
}

impl Default for Places {
    fn default() -> Self {
        let [needs, decisions, calls] = [NEEDS, DECISIONS, CALLS].map(Semaphore::new);
        Self { needs, decisions, calls }
    }
}
