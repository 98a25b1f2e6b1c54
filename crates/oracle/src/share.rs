//! Covered parts of a demand, in whole numbers (§6.3, §6.4).

use bigfleet_model::Totals;

const BILLION: i128 = 1_000_000_000;

/// `⌊x · 10⁹ / d⌋` for `x ≥ 0`, `d > 0`. Where `x · 10⁹` passes `i128` it is
/// divided digit by digit, so the result is exact; only a result that itself
/// passes `i128` saturates.
pub(crate) fn per_billion(x: i128, d: i128) -> i128 {
    match x.checked_mul(BILLION) {
        Some(product) => product / d,
        None => {
            let mut quotient = x / d;
            let mut rest = x % d;
            for _ in 0..9 {
                let (digit, left) = ten_times(rest, d);
                quotient = quotient.saturating_mul(10).saturating_add(digit);
                rest = left;
            }
            quotient
        }
    }
}

/// `10 · rest` divided by `d`, by adding up, since ten times may not fit.
fn ten_times(rest: i128, d: i128) -> (i128, i128) {
    let (mut digit, mut left) = (0, 0);
    for _ in 0..10 {
        if left >= d - rest {
            left -= d - rest;
            digit += 1;
        } else {
            left += rest;
        }
    }
    (digit, left)
}

/// Σ over positive dimensions of `d` of ⌊min(x, d)·10⁹ / d⌋ (§6.3).
pub(crate) fn cov(x: &Totals, d: &Totals) -> i128 {
    d.iter().fold(0, |sum: i128, (dimension, wanted)| {
        sum.saturating_add(per_billion(x.get(dimension).min(wanted), wanted))
    })
}

/// The same uncapped (§6.3).
pub(crate) fn load(x: &Totals, d: &Totals) -> i128 {
    d.iter().fold(0, |sum: i128, (dimension, wanted)| {
        sum.saturating_add(per_billion(x.get(dimension), wanted))
    })
}

/// `min(1, min over positive dims of R of contribution/R)` (§6.4).
pub(crate) fn share(contribution: &Totals, residual: &Totals) -> f64 {
    residual.iter().fold(1.0, |share: f64, (dimension, missing)| {
        share.min(contribution.get(dimension) as f64 / missing as f64)
    })
}

/// The share in 10⁻⁹, rounded down (§6.4).
pub(crate) fn whole_share(contribution: &Totals, residual: &Totals) -> i128 {
    residual.iter().fold(BILLION, |share, (dimension, missing)| {
        share.min(per_billion(contribution.get(dimension).min(missing), missing))
    })
}

#[cfg(test)]
mod tests {
    use super::per_billion;

    #[test]
    fn small_and_huge_numbers_divide_alike() {
        assert_eq!(per_billion(1, 3), 333_333_333);
        assert_eq!(per_billion(7, 3), 2_333_333_333);
        let huge = i128::MAX / 9 * 3;
        assert_eq!(per_billion(huge, i128::MAX / 9 * 9), 333_333_333);
        assert_eq!(per_billion(i128::MAX, i128::MAX), 1_000_000_000);
        assert_eq!(per_billion(i128::MAX - 1, i128::MAX), 999_999_999);
        assert_eq!(per_billion(i128::MAX, 1), i128::MAX);
    }
}
