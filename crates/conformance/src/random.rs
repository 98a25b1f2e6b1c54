//! SplitMix64: small, seeded, the same everywhere, so that a seed in a report
//! replays in any build.

/// A stream of numbers that a seed decides.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed and a name: tests do not shift each other's numbers.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a over the name.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(seed ^ hash)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).unsigned_abs()) as i64
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// In any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_names_differ() {
        let draw = |seed, name| {
            (0..4)
                .map(move |_| 0)
                .scan(Random::new(seed, name), |r, _: i32| Some(r.draw()))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7, "PR-01"), draw(7, "PR-01"));
        assert_ne!(draw(7, "PR-01"), draw(8, "PR-01"));
        assert_ne!(draw(7, "PR-01"), draw(7, "PR-02"));
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(1, "bounds");
        for _ in 0..1000 {
            assert!((-3..=3).contains(&random.between(-3, 3)));
            assert!(random.below(5) < 5);
        }
        assert_eq!(random.below(0), 0);
    }
}
