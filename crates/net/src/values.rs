//! Values of flags that must hold something; for clap's `value_parser`.

use std::time::Duration;

use crate::duration;

/// Longest id, in bytes.
const MAX_ID: usize = 253;

/// A time that something may take.
pub fn positive(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if duration.is_zero() { Err("must be above 0".to_owned()) } else { Ok(duration) }
}

/// A count of something that there must be.
pub fn above_zero(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a whole number above 0".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// A share of a whole.
pub fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be a share from 0 to 1, for example 0.05".to_owned()),
    }
}

/// A number that is neither negative nor endless.
pub fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("must be a number from 0 up".to_owned()),
    }
}

/// An id that a certificate can carry, of a `what`.
pub fn id(text: &str, what: &str, example: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match text.len() {
        0 => Err(format!("must not be empty; name the {what}, for example {example}")),
        1..=MAX_ID if text.bytes().all(legal) => Ok(text.to_owned()),
        1..=MAX_ID => Err("must consist of A-Z a-z 0-9 . _ - only".to_owned()),
        bytes => Err(format!("has {bytes} bytes; shorten it to {MAX_ID}")),
    }
}
