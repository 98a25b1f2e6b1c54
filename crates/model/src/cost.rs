//! What a machine really costs a workload (engine chapter §2).

/// `price + probability × penalty` in dollars per hour. A penalty below zero
/// counts as none, and 0 × ∞ as 0: pinned work on a machine that is never
/// interrupted costs its price, not NaN.
pub fn effective_cost(price_per_hour: f64, interruption_probability: f64, penalty: f64) -> f64 {
    let penalty = penalty.max(0.0);
    if interruption_probability == 0.0 || penalty == 0.0 {
        price_per_hour
    } else {
        price_per_hour + interruption_probability * penalty
    }
}

#[cfg(test)]
mod tests {
    use super::effective_cost;

    #[test]
    fn expected_interruption_adds_to_the_price() {
        assert_eq!(effective_cost(0.3, 0.5, 8.0), 4.3);
        assert_eq!(effective_cost(0.3, 0.5, -8.0), 0.3);
    }

    #[test]
    fn inv_17_pinned_work_never_costs_nan() {
        assert_eq!(effective_cost(0.3, 0.0, f64::INFINITY), 0.3);
        assert_eq!(effective_cost(0.3, 0.1, f64::INFINITY), f64::INFINITY);
        assert_eq!(effective_cost(0.0, 0.0, f64::INFINITY), 0.0);
    }
}
