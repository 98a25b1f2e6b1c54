//! What one pod requests, to the nano-unit.

use bigfleet_model::{Dimension, Quantity, quantity::Family};

/// The positive amounts of one request in the order of dimensions; a missing one is
/// zero. Unlike the engine's vectors it is exact and remembers how amounts were
/// written, for sums must print alike in whatever order they were made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vector(Box<[Amount]>);

/// One positive amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Amount {
    pub(super) dimension: Dimension,
    pub(super) nanos: i128,
    pub(super) binary: bool,
}

impl FromIterator<(Dimension, Quantity)> for Vector {
    /// Each dimension once.
    fn from_iter<I: IntoIterator<Item = (Dimension, Quantity)>>(amounts: I) -> Self {
        let mut amounts: Vec<Amount> = amounts
            .into_iter()
            .filter(|(_, quantity)| quantity.nanos() > 0)
            .map(|(dimension, quantity)| Amount {
                dimension,
                nanos: quantity.nanos(),
                binary: quantity.family() == Family::Binary,
            })
            .collect();
        amounts.sort_unstable_by_key(|amount| amount.dimension);
        Self(amounts.into())
    }
}

impl Vector {
    pub(super) fn amounts(&self) -> &[Amount] {
        &self.0
    }
}
