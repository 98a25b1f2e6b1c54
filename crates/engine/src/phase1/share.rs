//! How much of a wanted vector another one covers, in exact whole numbers and in
//! the doubles that the ranking is defined by (§6.3, §6.4).

use bigfleet_model::Totals;

const BILLION: i128 = 1_000_000_000;

/// `⌊x · 10⁹ / whole⌋`.
fn billionths(x: i128, whole: i128) -> i128 {
    if x == 0 || x == whole {
        return if x == 0 { 0 } else { BILLION };
    }
    if let Some(quotient) = estimated(x, whole) {
        return quotient;
    }
    if let Some(scaled) = x.checked_mul(BILLION) {
        return scaled / whole;
    }
    // By long division where the product does not fit.
    let mut parts = x / whole;
    let mut rest = x % whole;
    for _ in 0..9 {
        rest = rest.saturating_mul(10);
        parts = parts.saturating_mul(10).saturating_add(rest / whole);
        rest %= whole;
    }
    parts
}

/// The same by way of a double, where that is off by one at most: long division costs
/// more than all the rest of a comparison of domains.
fn estimated(x: i128, whole: i128) -> Option<i128> {
    let (small, divisor) = (i64::try_from(x).ok()?, i64::try_from(whole).ok()?);
    let estimate = (small as f64 * 1e9 / divisor as f64) as i64;
    // Three roundings of half a unit in 2⁵³ each: below a half up to 2⁵⁰.
    (0..1 << 50).contains(&estimate).then(|| {
        let (quotient, scaled) = (i128::from(estimate), x * BILLION);
        if quotient * whole > scaled {
            quotient - 1
        } else if (quotient + 1) * whole <= scaled {
            quotient + 1
        } else {
            quotient
        }
    })
}

/// Σ over the dimensions of `wanted` of the share that `have` covers, at most all.
pub(crate) fn coverage(have: &Totals, wanted: &Totals) -> i128 {
    if have.is_zero() {
        return 0;
    }
    let share = |(dimension, whole): (_, i128)| billionths(have.get(dimension).min(whole), whole);
    wanted.iter().map(share).fold(0, i128::saturating_add)
}

/// The same, not cut off at all of it.
pub(crate) fn load(have: &Totals, wanted: &Totals) -> i128 {
    let share = |(dimension, whole): (_, i128)| billionths(have.get(dimension), whole);
    wanted.iter().map(share).fold(0, i128::saturating_add)
}

/// The share of the worst dimension, at most 1.
pub(crate) fn worst_share(contribution: &Totals, residual: &Totals) -> f64 {
    let share = |(dimension, whole): (_, i128)| contribution.get(dimension) as f64 / whole as f64;
    residual.iter().map(share).fold(1.0, f64::min)
}

/// [`worst_share`] in whole billionths, rounded down.
pub(crate) fn worst_billionths(contribution: &Totals, residual: &Totals) -> i128 {
    let share = |(dimension, whole): (_, i128)| billionths(contribution.get(dimension), whole);
    residual.iter().map(share).fold(BILLION, i128::min)
}

#[cfg(test)]
mod tests {
    use bigfleet_model::Dimension;

    use super::*;

    fn vector(cpu: i128, memory: i128) -> Totals {
        [(Dimension::CPU, cpu), (Dimension::MEMORY, memory)].into_iter().collect()
    }

    #[test]
    fn shares_are_exact_and_do_not_overflow() {
        assert_eq!(billionths(1, 3), 333_333_333);
        assert_eq!(billionths(7, 3), 2_333_333_333);
        // Odd, so that half of it, rounded down, is a little less than half.
        let huge = (i128::MAX / 20) | 1;
        assert_eq!(billionths(huge / 2, huge), 499_999_999);
        assert_eq!(billionths(huge, huge), BILLION);
    }

    #[test]
    fn an_estimate_is_as_exact_as_a_division() {
        let mut state = 7_u64;
        let mut draw = |bits: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i128::from(state >> (64 - bits)) + 1
        };
        for _ in 0..20_000 {
            for bits in [3, 12, 30, 50, 62] {
                let (x, whole) = (draw(bits), draw(bits));
                for x in [x, whole - 1, whole + 1, 3 * whole, x / 2] {
                    assert_eq!(billionths(x, whole), x * BILLION / whole, "{x} of {whole}");
                }
            }
        }
    }

    #[test]
    fn coverage_is_capped_and_load_is_not() {
        let wanted = vector(4_000, 1_000);
        assert_eq!(coverage(&vector(8_000, 500), &wanted), BILLION + BILLION / 2);
        assert_eq!(load(&vector(8_000, 500), &wanted), 2 * BILLION + BILLION / 2);
        assert_eq!(worst_share(&vector(8_000, 500), &wanted), 0.5);
        assert_eq!(worst_billionths(&vector(8_000, 500), &wanted), BILLION / 2);
        assert_eq!(worst_share(&vector(8_000, 0), &wanted), 0.0);
    }
}
