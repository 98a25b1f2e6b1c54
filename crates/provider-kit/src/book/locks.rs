//! The serialisation point of each machine.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Enough that two machines at work rarely share one.
const STRIPES: u64 = 1024;

/// A lock per machine, known or not: ids are the caller's to invent, so machines
/// share a fixed number of them. Whoever holds one takes no other.
#[derive(Debug)]
pub(super) struct Locks {
    hasher: RandomState,
    stripes: Vec<Arc<Mutex<()>>>,
}

impl Default for Locks {
    fn default() -> Self {
        let stripes = (0..STRIPES).map(|_| Arc::default()).collect();
        Self { hasher: RandomState::new(), stripes }
    }
}

impl Locks {
    pub(super) async fn lock(&self, id: &str) -> OwnedMutexGuard<()> {
        let stripe = (self.hasher.hash_one(id) % STRIPES) as usize;
        self.stripes[stripe].clone().lock_owned().await
    }
}
