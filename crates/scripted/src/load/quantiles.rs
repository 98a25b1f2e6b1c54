//! Exact quantiles of many durations in bounded memory.

use std::{collections::BTreeMap, time::Duration};

/// Microseconds below this have a counter of their own.
const DENSE: usize = 1 << 17;

/// Counts of durations, exact to the microsecond. It grows with the number of
/// different durations, not with their count.
#[derive(Debug, Default)]
pub(super) struct Counts {
    dense: Vec<u32>,
    sparse: BTreeMap<u64, u32>,
    total: u64,
}

impl Counts {
    pub(super) fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.total += 1;
        match usize::try_from(micros).ok().filter(|micros| *micros < DENSE) {
            Some(micros) => {
                if self.dense.len() <= micros {
                    self.dense.resize(micros + 1, 0);
                }
                self.dense[micros] += 1;
            }
            None => *self.sparse.entry(micros).or_default() += 1,
        }
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        Quantiles {
            count: self.total,
            p50: self.at(500),
            p90: self.at(900),
            p99: self.at(990),
            p999: self.at(999),
            max: self.at(1_000),
        }
    }

    /// The smallest duration that at least so many of a thousand do not exceed.
    fn at(&self, per_mille: u64) -> Duration {
        let rank = (self.total * per_mille).div_ceil(1_000).max(1);
        let dense = self.dense.iter().zip(0..).map(|(count, micros)| (micros, *count));
        let sparse = self.sparse.iter().map(|(micros, count)| (*micros, *count));
        let mut seen = 0;
        for (micros, count) in dense.chain(sparse) {
            seen += u64::from(count);
            if seen >= rank {
                return Duration::from_micros(micros);
            }
        }
        Duration::ZERO
    }
}

/// Of all durations, none sampled away. Zero if there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many.
    pub count: u64,
    /// Half of them are at most this long.
    pub p50: Duration,
    /// Nine in ten.
    pub p90: Duration,
    /// 99 in a hundred.
    pub p99: Duration,
    /// 999 in a thousand.
    pub p999: Duration,
    /// The longest.
    pub max: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nearest rank over the sorted list.
    fn by_sorting(sorted: &[u64], per_mille: usize) -> Duration {
        let rank = (sorted.len() * per_mille).div_ceil(1_000).max(1);
        Duration::from_micros(sorted[rank - 1])
    }

    #[test]
    fn equal_to_sorting_them_all() {
        let mut random = crate::random::Random::new(11);
        for count in [1, 2, 10, 999, 1_000, 1_001, 5_000] {
            let mut counts = Counts::default();
            let mut all: Vec<u64> =
                (0..count).map(|_| random.below(1 << (1 + random.clone().below(24)))).collect();
            all.iter().for_each(|micros| counts.record(Duration::from_micros(*micros)));
            all.sort_unstable();
            let quantiles = counts.quantiles();
            assert_eq!(quantiles.count, count);
            for (got, per_mille) in [
                (quantiles.p50, 500),
                (quantiles.p90, 900),
                (quantiles.p99, 990),
                (quantiles.p999, 999),
                (quantiles.max, 1_000),
            ] {
                assert_eq!(got, by_sorting(&all, per_mille), "{per_mille} of {count}");
            }
        }
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(Counts::default().quantiles(), Quantiles::default());
    }
}
