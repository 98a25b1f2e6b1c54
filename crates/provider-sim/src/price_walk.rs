//! Prices that move.

use std::{collections::HashMap, time::Duration};

use bigfleet_provider_kit::CapacityType;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{dice::Dice, span, tier::Tier};

/// Share of the way back to the declared price, per step: a walk without it would
/// leave for good.
const REVERSION: f64 = 0.05;

/// The price of spot capacity, per tier and zone, walks around the declared one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceWalk {
    /// Between two steps.
    #[serde(with = "span")]
    pub interval: Duration,
    /// Size of a step, as a share of the price.
    pub sigma: f64,
}

#[derive(Debug)]
pub(crate) struct Prices {
    walk: Option<PriceWalk>,
    dice: Dice,
    begun: Instant,
    /// Logarithm of price over declared price, and how many steps led there.
    walked: HashMap<(String, String), (f64, u64)>,
}

impl Prices {
    pub(crate) fn new(walk: Option<PriceWalk>, dice: Dice, begun: Instant) -> Self {
        Self { walk, dice: dice.named("price"), begun, walked: HashMap::new() }
    }

    /// As of now.
    pub(crate) fn price(&mut self, tier: &Tier, zone: &str, now: Instant) -> f64 {
        let Some(walk) = self.walk.filter(|_| tier.capacity == CapacityType::Spot) else {
            return tier.price;
        };
        let steps = now.duration_since(self.begun).as_nanos() / walk.interval.as_nanos().max(1);
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let dice = self.dice.named(&tier.name).named(zone);
        let (at, taken) = self.walked.entry((tier.name.clone(), zone.to_owned())).or_default();
        while *taken < steps {
            *taken += 1;
            *at = *at * (1.0 - REVERSION) + walk.sigma * dice.numbered(*taken).normal();
        }
        // Four digits, as price lists have; never free.
        ((tier.price * at.exp() * 1e4).round() / 1e4).max(1e-4)
    }
}
