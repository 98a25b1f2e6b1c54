//! What will happen to hosts by itself.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use bigfleet_provider_kit::CapacityType;
use tokio::time::Instant;

use crate::{config::Mishaps, dice::Dice, tier::Tier};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// An advice to move elsewhere.
    Rebalance,
    /// The host will be taken.
    Notice,
    /// The host is taken, and its owner is told.
    Take,
    /// The host dies, and nobody is told.
    Die,
}

/// When, and to which host. A host that is no more is past all harm: a slot's next
/// host has another generation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) at: Instant,
    pub(crate) slot: usize,
    pub(crate) generation: u64,
    pub(crate) event: Event,
}

/// In the order of time.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    due: BinaryHeap<Reverse<Due>>,
}

/// Nothing is forecast past this.
const HORIZON: f64 = 365.0 * 24.0;
/// Nothing happens before this: a notice about a host that nobody knows yet is lost.
const EARLIEST: Duration = Duration::from_secs(1);

impl Forecast {
    pub(crate) fn add(&mut self, due: Due) {
        self.due.push(Reverse(due));
    }

    /// All that awaits a new host.
    pub(crate) fn host(
        &mut self,
        (slot, generation): (usize, u64),
        tier: &Tier,
        mishaps: &Mishaps,
        dice: Dice,
        now: Instant,
    ) {
        let mut add = |wait: Duration, event| {
            self.add(Due { at: now + wait.max(EARLIEST), slot, generation, event });
        };
        if let Some(wait) = wait(mishaps.host_death_rate, 1.0, dice.named("death")) {
            add(wait, Event::Die);
        }
        let rules = mishaps.interruptions;
        let declared = (tier.capacity == CapacityType::Spot).then_some(tier.probability);
        let dice = dice.named("interruption");
        if let Some(noticed) = wait(declared.unwrap_or_default(), rules.factor, dice) {
            if !rules.rebalance.is_zero() {
                add(noticed.saturating_sub(rules.rebalance), Event::Rebalance);
            }
            add(noticed, Event::Notice);
            add(noticed + rules.notice, Event::Take);
        }
    }

    /// What is due by now, in order.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Due> {
        self.due.peek().filter(|Reverse(due)| due.at <= now)?;
        self.due.pop().map(|Reverse(due)| due)
    }

    /// When there is something to do again.
    pub(crate) fn wakes(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse(due)| due.at)
    }
}

/// Until a Poisson process first strikes, whose probability within an hour is this.
fn wait(probability: f64, factor: f64, dice: Dice) -> Option<Duration> {
    // Certainty has no rate; this strikes within seconds.
    let rate = -(1.0 - probability.min(0.999_999)).ln() * factor;
    let hours = dice.exponential() / rate;
    (rate > 0.0 && hours < HORIZON).then(|| Duration::from_secs_f64(hours * 3600.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declared_probability_is_that_of_an_hour() {
        let struck = |probability, factor| {
            let within = |number| {
                wait(probability, factor, Dice::new(5).numbered(number))
                    .is_some_and(|wait| wait < Duration::from_secs(3600))
            };
            (0..20_000).filter(|number| within(*number)).count() as f64 / 20_000.0
        };
        assert!((struck(0.3, 1.0) - 0.3).abs() < 0.01);
        assert!((struck(0.05, 1.0) - 0.05).abs() < 0.005);
        assert!((struck(0.3, 2.0) - 0.51).abs() < 0.01);
        assert!(struck(0.3, 0.0) == 0.0 && struck(0.0, 1.0) == 0.0 && struck(1.0, 1.0) == 1.0);
    }

    #[test]
    fn a_host_is_known_before_anything_happens_to_it() {
        let tier = &crate::Config::default_fleet().clouds[2].tiers[1];
        let mut mishaps = Mishaps::default();
        mishaps.interruptions.rebalance = Duration::from_secs(365 * 24 * 3600);
        let (mut forecast, now) = (Forecast::default(), Instant::now());
        forecast.host((0, 1), tier, &mishaps, Dice::new(1), now);
        assert_eq!(forecast.wakes(), Some(now + EARLIEST));
        let mut due = || forecast.next(now + Duration::from_secs(1 << 30)).map(|due| due.event);
        let events = [due(), due(), due(), due()];
        assert_eq!(events, [Some(Event::Rebalance), Some(Event::Notice), Some(Event::Take), None]);
    }
}
