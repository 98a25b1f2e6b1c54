//! Durations as documents write them: `90s`, `5m`.

use std::time::Duration;

use bigfleet_net::duration;
use serde::{Deserialize, Deserializer, de::Error as _};

/// For `#[serde(with)]`, and as a type where that does not reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration::parse(&text).map(Self).map_err(D::Error::custom)
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    Span::deserialize(from).map(|span| span.0)
}

/// Of an optional field.
pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<Span>::deserialize(from)?.map(|span| span.0))
}
