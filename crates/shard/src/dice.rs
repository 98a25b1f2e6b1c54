//! The shard's few draws: jitter, nothing that is decided.

use std::sync::atomic::{AtomicU64, Ordering};

/// SplitMix64 behind an atomic.
#[derive(Debug)]
pub(crate) struct Dice(AtomicU64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// In `[0, 1)`.
    pub(crate) fn fraction(&self) -> f64 {
        let mut mixed = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}
