//! Values that must hold something, beside those that every process has.

pub(super) use bigfleet_net::values::{above_zero, fraction, not_negative, positive};
use bigfleet_net::{identity::Identity, values};

use super::ProviderIdentity;
use crate::data_dir::MAX_EPOCH;

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
    values::id(text, "shard", "shard-0")
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
