//! Maps of resource name to quantity.

use std::collections::BTreeMap;

use super::{Quoted, Refusal};
use crate::{
    dimension::{Dimension, DimensionError},
    quantity::Quantity,
    resources::{Resources, Totals},
};

/// Why one entry of a resource map was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not a quantity.
    #[error("unparseable quantity {}", Quoted(.0))]
    Unparseable(String),
    /// Below zero.
    #[error("negative quantity {}", Quoted(.0))]
    Negative(String),
    /// Of one machine or one unit, and past `i64`.
    #[error("unparseable quantity {}: exceeds 64-bit milli-units", Quoted(.0))]
    TooLarge(String),
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] DimensionError),
}

/// Reads one entry: any amount that parses.
pub fn amount(name: &str, text: &str) -> Result<(Dimension, Quantity), AmountError> {
    let quantity: Quantity = text.parse().map_err(|_| AmountError::Unparseable(text.to_owned()))?;
    if quantity.is_negative() {
        return Err(AmountError::Negative(text.to_owned()));
    }
    Ok((Dimension::intern(name)?, quantity))
}

/// Reads one entry of a demanded unit, which must fit `i64` milli-units.
pub fn unit_amount(name: &str, text: &str) -> Result<(Dimension, Quantity), AmountError> {
    let (dimension, quantity) = amount(name, text)?;
    narrow(quantity.millis_ceil(), text)?;
    Ok((dimension, quantity))
}

fn narrow(millis: i128, text: &str) -> Result<i64, AmountError> {
    i64::try_from(millis).map_err(|_| AmountError::TooLarge(text.to_owned()))
}

/// Which way a quantity finer than a milli-unit is read.
#[derive(Clone, Copy)]
pub(super) enum Rounding {
    /// Demand: never ask for less than was asked.
    Up,
    /// Supply: never promise more than there is.
    Down,
}

impl Rounding {
    const fn millis(self, quantity: Quantity) -> i128 {
        match self {
            Self::Up => quantity.millis_ceil(),
            Self::Down => quantity.millis_floor(),
        }
    }
}

/// Any amount that parses. In name order, so that of several mistakes always the
/// same one is told.
pub(super) fn totals(path: &str, map: &BTreeMap<String, String>) -> Result<Totals, Refusal> {
    let read = |(name, text): (&String, &String)| {
        let (dimension, quantity) = amount(name, text).map_err(|e| refusal(path, name, &e))?;
        Ok((dimension, Rounding::Up.millis(quantity)))
    };
    map.iter().map(read).collect()
}

/// Amounts of one machine or one unit, which must fit `i64`.
pub(super) fn resources(
    path: &str,
    map: &BTreeMap<String, String>,
    rounding: Rounding,
) -> Result<Resources, Refusal> {
    let read = |(name, text): (&String, &String)| {
        let read = amount(name, text).and_then(|(dimension, quantity)| {
            Ok((dimension, narrow(rounding.millis(quantity), text)?))
        });
        read.map_err(|e| refusal(path, name, &e))
    };
    map.iter().map(read).collect()
}

fn refusal(path: &str, name: &str, error: &AmountError) -> Refusal {
    Refusal::new(format!("{path}[{}]", Quoted(name)), error)
}
