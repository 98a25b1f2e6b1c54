//! How often the fleet may be changed.

use std::time::Duration;

use tokio::time::Instant;

/// Writes a second, and at once.
const PER_SECOND: f64 = 5.0;
const BURST: f64 = 10.0;

/// A token bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    tokens: f64,
    counted: Instant,
}

impl Bucket {
    pub(super) fn new(now: Instant) -> Self {
        Self { tokens: BURST, counted: now }
    }

    /// Whether one more is allowed now.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.counted).max(Duration::ZERO);
        self.tokens = passed.as_secs_f64().mul_add(PER_SECOND, self.tokens).min(BURST);
        self.counted = now;
        let allowed = self.tokens >= 1.0;
        if allowed {
            self.tokens -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_at_once_then_five_a_second() {
        let begun = Instant::now();
        let mut bucket = Bucket::new(begun);
        assert_eq!((0..20).filter(|_| bucket.take(begun)).count(), 10);
        let second = begun + Duration::from_secs(1);
        assert_eq!((0..20).filter(|_| bucket.take(second)).count(), 5);
        let hour = begun + Duration::from_secs(3_600);
        assert_eq!((0..20).filter(|_| bucket.take(hour)).count(), 10, "no more than a burst");
    }
}
