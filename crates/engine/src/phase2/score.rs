//! Who is the better victim (§2).

use crate::input::Phase2Options;

/// Higher is the better victim: far below the preemptor, quick to drain, cheap
/// to interrupt and of little worth where it runs.
#[must_use]
pub fn victim_score(options: &Phase2Options, gap: i64, interruption: f64, reclamation: f64) -> f64 {
    gap as f64 * options.weight_priority
        + options.weight_drain / options.estimated_drain_seconds.max(1.0)
        + options.weight_interruption / interruption.max(0.01)
        + options.weight_reclamation / reclamation.max(0.01)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_holds() {
        let options = Phase2Options {
            weight_priority: 2.0,
            weight_drain: 3.0,
            weight_interruption: 5.0,
            weight_reclamation: 7.0,
            estimated_drain_seconds: 4.0,
        };
        assert_eq!(victim_score(&options, 10, 0.5, 0.25), 20.0 + 0.75 + 10.0 + 28.0);
        assert_eq!(victim_score(&options, 0, 0.0, 0.0), 0.75 + 500.0 + 700.0);
        assert_eq!(victim_score(&options, 0, f64::INFINITY, f64::INFINITY), 0.75);
        let instant = Phase2Options { estimated_drain_seconds: 0.0, ..options };
        assert_eq!(victim_score(&instant, 0, f64::INFINITY, f64::INFINITY), 3.0);
    }
}
