//! What the cloud itself has left: hosts of one type in one zone.

use std::collections::BTreeMap;

use bigfleet_provider_kit::CloudError;
use serde::Deserialize;
use tokio::time::Instant;

/// A limited supply; types and zones without one are never short.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StockConfig {
    /// Instance type.
    #[serde(rename = "type")]
    pub instance_type: String,
    /// Where.
    pub zone: String,
    /// How many at the start, and at most.
    pub count: u32,
    /// How many come back an hour.
    #[serde(default)]
    pub refill_per_hour: f64,
}

#[derive(Debug)]
struct Pile {
    left: f64,
    most: f64,
    per_hour: f64,
    counted: Instant,
}

impl Pile {
    fn count(&mut self, now: Instant) {
        let hours = now.duration_since(self.counted).as_secs_f64() / 3600.0;
        self.left = (self.left + hours * self.per_hour).min(self.most);
        self.counted = now;
    }
}

/// All piles of one cloud.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    piles: BTreeMap<(String, String), Pile>,
}

impl Stock {
    pub(crate) fn new(configured: &[StockConfig], now: Instant) -> Self {
        let mut this = Self::default();
        for pile in configured {
            this.set(
                (&pile.instance_type, &pile.zone),
                pile.count,
                Some(pile.refill_per_hour),
                now,
            );
        }
        this
    }

    /// Sets what is left. The most it refills to rises with it, but never falls: an
    /// emptied pile that refills comes back to what it was.
    pub(crate) fn set(
        &mut self,
        (kind, zone): (&str, &str),
        count: u32,
        per_hour: Option<f64>,
        now: Instant,
    ) {
        let left = f64::from(count);
        let empty = Pile { left, most: left, per_hour: 0.0, counted: now };
        let pile = self.piles.entry((kind.to_owned(), zone.to_owned())).or_insert(empty);
        pile.count(now);
        pile.left = left;
        pile.most = pile.most.max(left);
        pile.per_hour = per_hour.unwrap_or(pile.per_hour);
    }

    /// Takes one.
    pub(crate) fn take(&mut self, kind: &str, zone: &str, now: Instant) -> Result<(), CloudError> {
        let Some(pile) = self.piles.get_mut(&(kind.to_owned(), zone.to_owned())) else {
            return Ok(());
        };
        pile.count(now);
        if pile.left < 1.0 {
            return Err(CloudError::OutOfStock(format!("no {kind} left in {zone}")));
        }
        pile.left -= 1.0;
        Ok(())
    }

    /// One comes back.
    pub(crate) fn give(&mut self, kind: &str, zone: &str) {
        if let Some(pile) = self.piles.get_mut(&(kind.to_owned(), zone.to_owned())) {
            pile.left = (pile.left + 1.0).min(pile.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pile_empties_and_refills() {
        let now = Instant::now();
        let configured = StockConfig {
            instance_type: "m".into(),
            zone: "a".into(),
            count: 2,
            refill_per_hour: 1.0,
        };
        let mut stock = Stock::new(&[configured], now);
        stock.take("m", "a", now).unwrap();
        stock.take("m", "a", now).unwrap();
        let error = stock.take("m", "a", now).unwrap_err();
        assert_eq!(error.to_string(), "out of stock: no m left in a");
        stock.take("m", "b", now).unwrap();
        let later = now + Duration::from_secs(3599);
        assert!(stock.take("m", "a", later).is_err());
        stock.take("m", "a", later + Duration::from_secs(2)).unwrap();
        let days = later + Duration::from_secs(48 * 3600);
        stock.take("m", "a", days).unwrap();
        stock.take("m", "a", days).unwrap();
        assert!(stock.take("m", "a", days).is_err(), "never more than there was");
        stock.give("m", "a");
        stock.take("m", "a", days).unwrap();
        stock.set(("m", "a"), 0, Some(0.0), days);
        assert!(stock.take("m", "a", days + Duration::from_secs(1 << 30)).is_err());
    }
}
