//! Values that must hold something.

use std::time::Duration;

use bigfleet_net::{duration, identity::Identity};

use super::ProviderIdentity;
use crate::data_dir::MAX_EPOCH;

/// Longest id, in bytes.
const MAX_ID: usize = 253;

/// A time that something may take.
pub(super) fn positive(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if duration.is_zero() { Err("must be above 0".to_owned()) } else { Ok(duration) }
}

pub(super) fn above_zero(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a whole number above 0".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// A share of a whole.
pub(super) fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be a share from 0 to 1, for example 0.05".to_owned()),
    }
}

/// A number that is neither negative nor endless.
pub(super) fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("must be a number from 0 up".to_owned()),
    }
}

pub(super) fn epoch_floor(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(floor) if (0..=MAX_EPOCH).contains(&floor) => Ok(floor),
        _ => Err(format!(
            "must be from 0 to {MAX_EPOCH}; one more than the highest epoch this shard has had \
             is enough"
        )),
    }
}

pub(super) fn shard_id(text: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match text.len() {
        0 => Err("must not be empty; name the shard, for example shard-0".to_owned()),
        1..=MAX_ID if text.bytes().all(legal) => Ok(text.to_owned()),
        1..=MAX_ID => Err("must consist of A-Z a-z 0-9 . _ - only".to_owned()),
        bytes => Err(format!("has {bytes} bytes; shorten it to {MAX_ID}")),
    }
}

pub(super) fn provider_identity(text: &str) -> Result<ProviderIdentity, String> {
    if text.is_empty() {
        return Ok(ProviderIdentity(None));
    }
    match text.parse() {
        Ok(identity @ Identity::Provider(_)) => Ok(ProviderIdentity(Some(identity))),
        Ok(_) => Err("is no identity of a provider; write bigfleet://provider/NAME".to_owned()),
    }
}
