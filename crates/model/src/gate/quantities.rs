//! Maps of resource name to quantity.

use std::collections::BTreeMap;

use super::{Quoted, Refusal};
use crate::{
    dimension::Dimension,
    quantity::Quantity,
    resources::{Resources, Totals},
};

/// Which way a quantity finer than a milli-unit is read.
#[derive(Clone, Copy)]
pub(super) enum Rounding {
    /// Demand: never ask for less than was asked.
    Up,
    /// Supply: never promise more than there is.
    Down,
}

/// Any amount that parses.
pub(super) fn totals(path: &str, map: &BTreeMap<String, String>) -> Result<Totals, Refusal> {
    read(map, Rounding::Up).map(|entry| entry.map_err(|e| e.at(path))).collect()
}

/// Amounts of one machine or one unit, which must fit `i64`.
pub(super) fn resources(
    path: &str,
    map: &BTreeMap<String, String>,
    rounding: Rounding,
) -> Result<Resources, Refusal> {
    read(map, rounding)
        .zip(map)
        .map(|(entry, (name, text))| {
            let (dimension, millis) = entry.map_err(|e| e.at(path))?;
            let millis = i64::try_from(millis).map_err(|_| {
                let quoted = Quoted(text);
                Entry {
                    name,
                    reason: format!("unparseable quantity {quoted}: exceeds 64-bit milli-units"),
                }
                .at(path)
            })?;
            Ok((dimension, millis))
        })
        .collect()
}

/// A refused entry, before it is known where the map stands.
struct Entry<'a> {
    name: &'a str,
    reason: String,
}

impl Entry<'_> {
    fn at(self, path: &str) -> Refusal {
        Refusal { path: format!("{path}[{}]", Quoted(self.name)), reason: self.reason }
    }
}

/// In name order, so that of several mistakes always the same one is told.
fn read(
    map: &BTreeMap<String, String>,
    rounding: Rounding,
) -> impl Iterator<Item = Result<(Dimension, i128), Entry<'_>>> {
    map.iter().map(move |(name, text)| {
        let refuse = |reason: String| Entry { name, reason };
        let quantity: Quantity =
            text.parse().map_err(|_| refuse(format!("unparseable quantity {}", Quoted(text))))?;
        if quantity.is_negative() {
            return Err(refuse(format!("negative quantity {}", Quoted(text))));
        }
        let dimension = Dimension::intern(name).map_err(|error| refuse(error.to_string()))?;
        let millis = match rounding {
            Rounding::Up => quantity.millis_ceil(),
            Rounding::Down => quantity.millis_floor(),
        };
        Ok((dimension, millis))
    })
}
