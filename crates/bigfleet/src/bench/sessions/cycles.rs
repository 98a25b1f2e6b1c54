//! What a shard tells of its cycles.

use std::collections::BTreeMap;

use super::http;
use crate::error::Error;

const CYCLE: &str = "bigfleet_shard_cycle_duration_seconds";
const PHASE: &str = "bigfleet_shard_cycle_phase_duration_seconds";

/// The histogram of its cycles, and of their phases sum and count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cycles {
    /// Upper bound in seconds, and how many cycles took no longer.
    buckets: Vec<(f64, f64)>,
    sum: f64,
    phases: BTreeMap<String, (f64, f64)>,
}

impl Cycles {
    pub(super) async fn read(metrics: &str) -> Result<Self, Error> {
        Ok(Self::parse(&http::get(metrics, "/metrics").await?))
    }

    fn parse(text: &str) -> Self {
        let mut cycles = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let label = labels.split('"').nth(1).unwrap_or_default();
            let of = |metric: &str| name.strip_prefix(metric).map(str::to_owned);
            match (of(CYCLE).as_deref(), of(PHASE).as_deref()) {
                (Some("_bucket"), _) => {
                    let bound = label.parse().unwrap_or(f64::INFINITY);
                    cycles.buckets.push((bound, value));
                }
                (Some("_sum"), _) => cycles.sum = value,
                (_, Some("_sum")) => cycles.phases.entry(label.to_owned()).or_default().0 = value,
                (_, Some("_count")) => cycles.phases.entry(label.to_owned()).or_default().1 = value,
                _ => {}
            }
        }
        cycles
    }

    /// What came after an earlier reading.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let before = |at: usize| earlier.buckets.get(at).map_or(0.0, |(_, count)| *count);
        let buckets = self.buckets.iter().enumerate();
        let phase = |(name, (sum, count)): (&String, &(f64, f64))| {
            let (sum_before, count_before) = earlier.phases.get(name).copied().unwrap_or_default();
            (name.clone(), (sum - sum_before, count - count_before))
        };
        Self {
            buckets: buckets.map(|(at, (bound, count))| (*bound, count - before(at))).collect(),
            sum: self.sum - earlier.sum,
            phases: self.phases.iter().map(phase).collect(),
        }
    }

    pub(super) fn count(&self) -> f64 {
        self.buckets.last().map_or(0.0, |(_, count)| *count)
    }

    pub(super) fn mean_ms(&self) -> f64 {
        self.sum / self.count().max(1.0) * 1e3
    }

    /// Between the bounds of its bucket it is interpolated.
    pub(super) fn quantile_ms(&self, share: f64) -> f64 {
        let rank = self.count() * share;
        let (mut low, mut below) = (0.0, 0.0);
        for &(bound, count) in &self.buckets {
            if count >= rank && count > below {
                let bound = if bound.is_finite() { bound } else { low };
                return (low + (bound - low) * (rank - below) / (count - below)) * 1e3;
            }
            (low, below) = (bound, count);
        }
        0.0
    }

    /// Mean of each phase, in milliseconds.
    pub(super) fn phases(&self) -> impl Iterator<Item = (&str, f64)> {
        self.phases.iter().map(|(name, (sum, count))| (&**name, sum / count.max(1.0) * 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_what_came_between_two_readings() {
        let text = |counts: [u32; 3], sum: f64| {
            format!(
                "# TYPE x histogram\n{CYCLE}_sum {sum}\n{CYCLE}_count {}\n\
                 {CYCLE}_bucket{{le=\"0.001\"}} {}\n{CYCLE}_bucket{{le=\"0.002\"}} {}\n\
                 {CYCLE}_bucket{{le=\"+Inf\"}} {}\n{PHASE}_sum{{phase=\"emit\"}} {sum}\n\
                 {PHASE}_count{{phase=\"emit\"}} {}\n",
                counts[2], counts[0], counts[1], counts[2], counts[2]
            )
        };
        let before = Cycles::parse(&text([100, 100, 100], 0.5));
        let after = Cycles::parse(&text([150, 200, 200], 0.7));
        let window = after.since(&before);
        assert_eq!(window.count(), 100.0);
        assert!((window.mean_ms() - 2.0).abs() < 1e-9);
        assert!((window.quantile_ms(0.5) - 1.0).abs() < 1e-9);
        assert!((window.quantile_ms(0.75) - 1.5).abs() < 1e-9);
        let phases: Vec<_> = window.phases().collect();
        assert!(phases[0].0 == "emit" && (phases[0].1 - 2.0).abs() < 1e-9, "{phases:?}");
    }
}
