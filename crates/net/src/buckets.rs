//! Bounds of histograms: they double from the first, with finer ones around an
//! objective, no wider than a fifth of it.

use prometheus_client::metrics::{family::MetricConstructor, histogram::Histogram};

/// Bounds that double from `first` seconds on, and others between them.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    first: f64,
    count: u16,
    finer: &'static [f64],
}

impl Buckets {
    /// `count` bounds, the first of which is `first`.
    #[must_use]
    pub const fn doubling(first: f64, count: u16) -> Self {
        Self { first, count, finer: &[] }
    }

    /// These bounds, too.
    #[must_use]
    pub const fn with(self, finer: &'static [f64]) -> Self {
        Self { finer, ..self }
    }

    /// All of them in order.
    #[must_use]
    pub fn bounds(self) -> Vec<f64> {
        let mut bounds: Vec<f64> = (0..self.count)
            .map(|power| self.first * f64::from(power).exp2())
            .chain(self.finer.iter().copied())
            .collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        bounds
    }

    /// Whether the buckets on both sides of this bound are no wider than a fifth of it.
    #[must_use]
    pub fn resolve(self, objective: f64) -> bool {
        let bounds = self.bounds();
        let Some(at) = bounds.iter().position(|bound| *bound == objective) else { return false };
        let fine = |low: Option<&f64>, high: Option<&f64>| {
            low.zip(high).is_some_and(|(low, high)| high - low <= objective / 5.0)
        };
        fine(at.checked_sub(1).and_then(|at| bounds.get(at)), Some(&objective))
            && fine(Some(&objective), bounds.get(at + 1))
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
    fn bounds_double_and_resolve_what_they_are_made_finer_for() {
        let plain = Buckets::doubling(0.001, 14);
        assert_eq!(plain.bounds().len(), 14);
        assert_eq!(plain.bounds()[..4], [0.001, 0.002, 0.004, 0.008]);
        assert_eq!(plain.bounds()[13], 8.192);
        assert!(!plain.resolve(1.0) && !plain.resolve(1.024));
        assert!(plain.with(&[0.8, 1.0, 1.2]).resolve(1.0));
        assert!(!plain.with(&[0.7, 1.0, 1.2]).resolve(1.0));
        assert!(!plain.with(&[0.8, 1.0, 1.3]).with(&[0.8, 1.0]).resolve(1.3));
    }
}
