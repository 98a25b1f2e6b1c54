//! SplitMix64: small, seeded, good enough to pick victims.

/// What seed 0 stands for.
const DEFAULT_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self(if seed == 0 { DEFAULT_SEED } else { seed })
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In `[0, bound)`; the bias is below 2⁻⁴⁰ for any fleet.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        (wide >> 64) as usize
    }

    /// In `[0, 1)`.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// How many events of this mean happen; never a fixed number.
    pub(super) fn poisson(&mut self, mut mean: f64) -> usize {
        // Sums of such counts are such counts, and small ones need no
        // logarithms.
        const CHUNK: f64 = 16.0;
        let mut count = 0;
        while mean > CHUNK {
            count += self.small_poisson(CHUNK);
            mean -= CHUNK;
        }
        count + self.small_poisson(mean)
    }

    fn small_poisson(&mut self, mean: f64) -> usize {
        let limit = (-mean).exp();
        let mut count = 0;
        let mut product = self.unit();
        while product > limit {
            count += 1;
            product *= self.unit();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_zero_is_a_seed() {
        let numbers = |seed| {
            let mut rng = Rng::new(seed);
            [rng.next(), rng.next(), rng.next()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_eq!(numbers(0), numbers(DEFAULT_SEED));
    }

    #[test]
    fn counts_have_the_mean_and_the_spread_of_their_law() {
        for mean in [0.01, 0.5, 3.0, 16.5, 100.0] {
            let (mut rng, rounds) = (Rng::new(42), 20_000);
            let counts: Vec<f64> = (0..rounds).map(|_| rng.poisson(mean) as f64).collect();
            let average = counts.iter().sum::<f64>() / f64::from(rounds);
            let spread = counts.iter().map(|count| (count - average).powi(2)).sum::<f64>()
                / f64::from(rounds);
            let error = 6.0 * (mean / f64::from(rounds)).sqrt();
            assert!((average - mean).abs() < error, "{mean}: average {average}");
            assert!((spread / mean - 1.0).abs() < 0.25, "{mean}: variance {spread}");
        }
        assert_eq!(Rng::new(1).poisson(0.0), 0);
    }

    #[test]
    fn picks_stay_in_range_and_reach_everything() {
        let mut rng = Rng::new(3);
        let mut seen = [false; 7];
        (0..1000).for_each(|_| seen[rng.below(7)] = true);
        assert_eq!(seen, [true; 7]);
    }
}
