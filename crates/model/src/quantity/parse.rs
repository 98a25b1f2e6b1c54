//! The grammar: sign, digits with at most one point, then nothing, a decimal or
//! binary suffix, or an integer exponent.
//!
//! Foreign text decides the cost: digits may be many and exponents huge, so
//! sizes are compared before any arithmetic, and nothing is allocated.

use std::str::FromStr;

use super::{Family, NANOS_PER_UNIT, Quantity};

/// Where binary suffixes end, as they do in Kubernetes: 2^63 − 1 units.
const BINARY_MAX_NANOS: u128 = (i64::MAX as u128) * (NANOS_PER_UNIT as u128);

/// Digits of `i128::MAX`.
const MAX_DIGITS: i64 = 39;

/// Not a quantity, or one too large for `i128` nano-units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not of the grammar.
    #[error("not a Kubernetes quantity")]
    Malformed,
    /// Beyond about ±1.7e29.
    #[error("quantity does not fit 128-bit nano-units")]
    TooLarge,
}

use ParseQuantityError::{Malformed, TooLarge};

/// How the digits are scaled.
enum Scale {
    /// By 10^n.
    Decimal(i64),
    /// By 2^n.
    Binary(u32),
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        let (negative, rest) = match bytes.first() {
            Some(b'-') => (true, &bytes[1..]),
            Some(b'+') => (false, &bytes[1..]),
            _ => (false, bytes),
        };
        let (whole, rest) = split_digits(rest);
        let (fraction, suffix) = match rest.first() {
            Some(b'.') => split_digits(&rest[1..]),
            _ => (&rest[..0], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(Malformed);
        }
        let (magnitude, family) = match scale(suffix)? {
            Scale::Decimal(exponent) => (decimal(whole, fraction, exponent)?, Family::Decimal),
            Scale::Binary(shift) => (binary(whole, fraction, shift), Family::Binary),
        };
        let magnitude = i128::try_from(magnitude).map_err(|_| TooLarge)?;
        Ok(Self { nanos: if negative { -magnitude } else { magnitude }, family })
    }
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn scale(suffix: &[u8]) -> Result<Scale, ParseQuantityError> {
    Ok(match suffix {
        b"" => Scale::Decimal(0),
        b"n" => Scale::Decimal(-9),
        b"u" => Scale::Decimal(-6),
        b"m" => Scale::Decimal(-3),
        b"k" => Scale::Decimal(3),
        b"M" => Scale::Decimal(6),
        b"G" => Scale::Decimal(9),
        b"T" => Scale::Decimal(12),
        b"P" => Scale::Decimal(15),
        b"E" => Scale::Decimal(18),
        b"Ki" => Scale::Binary(10),
        b"Mi" => Scale::Binary(20),
        b"Gi" => Scale::Binary(30),
        b"Ti" => Scale::Binary(40),
        b"Pi" => Scale::Binary(50),
        b"Ei" => Scale::Binary(60),
        [b'e' | b'E', exponent @ ..] => Scale::Decimal(parse_exponent(exponent)?),
        _ => return Err(Malformed),
    })
}

fn parse_exponent(text: &[u8]) -> Result<i64, ParseQuantityError> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Malformed)
}

/// `digits × 10^exponent` in nano-units; finer than 1n rounds away from zero.
fn decimal(whole: &[u8], fraction: &[u8], exponent: i64) -> Result<u128, ParseQuantityError> {
    // What almost every quantity is: a short whole number with a plain suffix. At
    // most 38 digits in nano-units, so nothing overflows.
    let short = whole.len() <= 18 && (-9..=29 - whole.len() as i64).contains(&exponent);
    if short && fraction.is_empty() {
        let digits = whole.iter().fold(0u64, |n, byte| n * 10 + u64::from(byte - b'0'));
        return Ok(u128::from(digits) * 10u128.pow((exponent + 9) as u32));
    }
    let digits = || whole.iter().chain(fraction).map(|byte| u128::from(byte - b'0'));
    let Some(leading_zeros) = digits().position(|digit| digit != 0) else {
        return Ok(0);
    };
    let significant = (whole.len() + fraction.len() - leading_zeros) as i64;
    // The last digit stands at 10^place nano-units.
    let place = exponent.saturating_sub(fraction.len() as i64).saturating_add(9);
    // Trailing zeros may make a number with more digits than fit; count what is kept.
    let kept = significant.saturating_add(place.min(0));
    if kept.saturating_add(place.max(0)) > MAX_DIGITS {
        return Err(TooLarge);
    }
    let kept = kept.max(0) as usize;
    let mut nanos: u128 = 0;
    for digit in digits().skip(leading_zeros).take(kept) {
        nanos = nanos.checked_mul(10).and_then(|n| n.checked_add(digit)).ok_or(TooLarge)?;
    }
    if digits().skip(leading_zeros + kept).any(|digit| digit != 0) {
        nanos += 1;
    }
    let zeros = place.max(0) as u32;
    10u128.checked_pow(zeros).and_then(|factor| nanos.checked_mul(factor)).ok_or(TooLarge)
}

/// `digits × 2^shift` in nano-units, capped where Kubernetes caps it; finer than
/// 1n rounds away from zero.
fn binary(whole: &[u8], fraction: &[u8], shift: u32) -> u128 {
    let mut units: u128 = 0;
    for byte in whole {
        units = units * 10 + u128::from(byte - b'0');
        if units << shift > i64::MAX as u128 {
            return BINARY_MAX_NANOS;
        }
    }
    // From the last digit to the first: each step divides what came after by ten.
    // Rounding down inside and remembering that something was cut off is exact.
    let unit_nanos = (NANOS_PER_UNIT as u128) << shift;
    let (mut nanos, mut cut) = (0, false);
    for byte in fraction.iter().rev() {
        let sum = u128::from(byte - b'0') * unit_nanos + nanos;
        nanos = sum / 10;
        cut |= !sum.is_multiple_of(10);
    }
    (units * unit_nanos + nanos + u128::from(cut)).min(BINARY_MAX_NANOS)
}
