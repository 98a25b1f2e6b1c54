//! Randomness without a sequence: each draw has a name, and the same name gives the
//! same draw, whatever else was drawn before.

use std::f64::consts::TAU;

/// A place in the tree of draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dice {
    key: u64,
}

impl Dice {
    /// The root of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { key: mix(seed) }
    }

    /// The branch of this name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        // FNV-1a; the mixing makes up for its weakness.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.numbered(hash)
    }

    /// The branch of this number.
    #[must_use]
    pub const fn numbered(self, number: u64) -> Self {
        Self { key: mix(self.key ^ mix(number)) }
    }

    /// Uniform in [0, 1).
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub const fn share(self) -> f64 {
        (mix(self.key) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something of this probability happens.
    #[must_use]
    pub fn happens(self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Mean 0, deviation 1.
    #[must_use]
    pub fn normal(self) -> f64 {
        let (radius, angle) = (self.numbered(1).share(), self.numbered(2).share());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (TAU * angle).cos()
    }

    /// Mean 1: the wait of a Poisson process of rate 1.
    #[must_use]
    pub fn exponential(self) -> f64 {
        -(1.0 - self.share()).ln()
    }
}

/// The finaliser of splitmix64.
const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 20_000;

    fn mean(of: impl Fn(Dice) -> f64) -> f64 {
        let root = Dice::new(1).named("test");
        (0..DRAWS).map(|number| of(root.numbered(number))).sum::<f64>() / DRAWS as f64
    }

    #[test]
    fn a_draw_is_its_name() {
        let dice = |seed| Dice::new(seed).named("slot-1").numbered(3);
        assert_eq!(dice(7), dice(7));
        assert_ne!(dice(7), dice(8));
        assert_ne!(dice(7), Dice::new(7).named("slot-2").numbered(3));
        assert_ne!(dice(7), Dice::new(7).named("slot-1").numbered(4));
    }

    #[test]
    fn draws_have_their_means() {
        assert!((mean(Dice::share) - 0.5).abs() < 0.01);
        assert!((mean(Dice::exponential) - 1.0).abs() < 0.03);
        assert!(mean(Dice::normal).abs() < 0.03);
        assert!((mean(|dice| dice.normal().powi(2)) - 1.0).abs() < 0.05);
        assert!((mean(|dice| f64::from(u8::from(dice.happens(0.2)))) - 0.2).abs() < 0.01);
    }
}
