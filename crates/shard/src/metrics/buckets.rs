//! Bounds of histograms: they double from the first, with finer ones around an
//! objective, no wider than a fifth of it.

use prometheus_client::metrics::{family::MetricConstructor, histogram::Histogram};

/// Bounds that double from `first` seconds on, and others between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets {
    first: f64,
    count: u16,
    finer: &'static [f64],
}

/// A cycle: 5 s at most, alert at 1 s, 100 ms with aggregated demand.
pub(super) const CYCLE: Buckets = Buckets {
    first: 0.001,
    count: 14,
    finer: &[0.08, 0.09, 0.1, 0.11, 0.12, 0.8, 0.9, 1.0, 1.1, 1.2, 4.0, 4.5, 5.0, 5.5, 6.0],
};
/// A phase of a cycle.
pub(super) const PHASE: Buckets = Buckets { first: 0.001, count: 14, finer: &[] };
/// From demand to a node: 15 s at most.
pub(super) const PROVISIONING: Buckets =
    Buckets { first: 0.01, count: 20, finer: &[12.5, 14.0, 15.0, 16.0, 17.5] };
/// A step of a machine's way.
pub(super) const STEP: Buckets = Buckets { first: 0.01, count: 16, finer: &[] };
/// How long people wait.
pub(super) const WAIT: Buckets = Buckets { first: 1.0, count: 14, finer: &[] };

impl Buckets {
    fn bounds(self) -> Vec<f64> {
        let mut bounds: Vec<f64> = (0..self.count)
            .map(|power| self.first * f64::from(power).exp2())
            .chain(self.finer.iter().copied())
            .collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        bounds
    }
}

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.bounds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_double() {
        assert_eq!(PHASE.bounds().len(), 14);
        assert_eq!(PHASE.bounds()[..4], [0.001, 0.002, 0.004, 0.008]);
        assert_eq!(PHASE.bounds()[13], 8.192);
        assert_eq!(STEP.bounds()[15], 327.68);
        assert_eq!(WAIT.bounds()[13], 8192.0);
        assert_eq!(PROVISIONING.bounds().last(), Some(&5242.88));
    }

    #[test]
    fn no_bucket_beside_an_objective_is_wider_than_a_fifth_of_it() {
        for (buckets, objective) in [(CYCLE, 0.1), (CYCLE, 1.0), (CYCLE, 5.0), (PROVISIONING, 15.0)]
        {
            let bounds = buckets.bounds();
            let at = bounds.iter().position(|bound| *bound == objective).unwrap();
            for pair in [[bounds[at - 1], objective], [objective, bounds[at + 1]]] {
                assert!(pair[1] - pair[0] <= objective / 5.0, "{pair:?}");
            }
        }
    }
}
