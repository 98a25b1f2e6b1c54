//! Exact quantiles of measured times: every sample is kept, none is bucketed.

use std::time::Duration;

/// The smallest sample that at least `q` of all samples do not exceed; `None`
/// without samples.
#[must_use]
pub fn quantile(samples: &[Duration], q: f64) -> Option<Duration> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let rank = (q.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// `p50 1.2ms p99 3.4ms max 5ms of 60`, for a report.
#[must_use]
pub fn figures(samples: &[Duration]) -> String {
    let at = |q| quantile(samples, q).unwrap_or_default();
    format!("p50 {:.1?} p99 {:.1?} max {:.1?} of {}", at(0.5), at(0.99), at(1.0), samples.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(values: &[u64]) -> Vec<Duration> {
        values.iter().map(|&value| Duration::from_millis(value)).collect()
    }

    #[test]
    fn quantiles_are_samples() {
        let samples = ms(&[5, 1, 4, 2, 3]);
        for (q, expected) in [(0.0, 1), (0.2, 1), (0.21, 2), (0.5, 3), (0.99, 5), (1.0, 5)] {
            assert_eq!(quantile(&samples, q), Some(Duration::from_millis(expected)), "{q}");
        }
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn p99_of_a_hundred_leaves_one_out() {
        let mut samples = ms(&[1; 99]);
        samples.push(Duration::from_secs(9));
        assert_eq!(quantile(&samples, 0.99), Some(Duration::from_millis(1)));
        assert_eq!(figures(&samples), "p50 1.0ms p99 1.0ms max 9.0s of 100");
    }
}
