//! `--timeout`.

use std::time::Duration;

/// A duration that is not nothing; for clap's `value_parser`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let duration = bigfleet_net::duration::parse(text)?;
    if duration.is_zero() { Err("it must be more than 0".to_owned()) } else { Ok(duration) }
}
