//! Randomness that a test can replay.

use std::{sync::Mutex, sync::PoisonError, time::Duration};

use crate::dice::Dice;

/// A source of random numbers: spreading timers and naming things, not secrets.
#[derive(Debug)]
pub struct Entropy(Mutex<Dice>);

impl Entropy {
    /// Always the same numbers.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(Dice::seeded(seed)))
    }

    /// Seeded by the system.
    pub fn from_system() -> Result<Self, getrandom::Error> {
        Ok(Self::seeded(getrandom::u64()?))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// Somewhere in `[base, 2 × base)`.
    pub fn spread(&self, base: Duration) -> Duration {
        let nanos = u64::try_from(base.as_nanos()).unwrap_or(u64::MAX).max(1);
        base + Duration::from_nanos(self.next() % nanos)
    }

    /// A random UUID (version 4).
    pub fn uuid(&self) -> String {
        let (high, low) = (self.next(), self.next());
        let (high, low) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | (0b10 << 62));
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}
