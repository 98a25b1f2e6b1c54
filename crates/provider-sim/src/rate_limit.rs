//! How often the cloud's API may be called.

use bigfleet_provider_kit::CloudError;
use serde::Deserialize;
use tokio::time::Instant;

/// A bucket of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiRate {
    /// Calls a second, in the long run.
    pub per_second: f64,
    /// Calls at once.
    pub burst: u32,
}

#[derive(Debug)]
pub(crate) struct RateLimit {
    rate: Option<ApiRate>,
    tokens: f64,
    counted: Instant,
}

impl RateLimit {
    pub(crate) fn new(rate: Option<ApiRate>, now: Instant) -> Self {
        Self { rate, tokens: rate.map_or(0.0, |rate| f64::from(rate.burst)), counted: now }
    }

    /// One call, or to be tried again.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), CloudError> {
        let Some(rate) = self.rate else { return Ok(()) };
        let seconds = now.duration_since(self.counted).as_secs_f64();
        self.tokens = (self.tokens + seconds * rate.per_second).min(f64::from(rate.burst));
        self.counted = now;
        if self.tokens < 1.0 {
            return Err(CloudError::Retry("API rate limit exceeded".into()));
        }
        self.tokens -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_then_a_rate() {
        let now = Instant::now();
        let mut limit = RateLimit::new(Some(ApiRate { per_second: 2.0, burst: 3 }), now);
        let taken = (0..10).filter(|_| limit.take(now).is_ok()).count();
        assert_eq!(taken, 3);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..10).filter(|_| limit.take(later).is_ok()).count(), 2);
        assert!(matches!(limit.take(later), Err(CloudError::Retry(_))));
        let mut free = RateLimit::new(None, now);
        assert!((0..1000).all(|_| free.take(now).is_ok()));
    }
}
