//! Requests that count for nothing because they cannot be understood.

use std::fmt;

use bigfleet_model::gate::{AmountError, Refusal};
use bigfleet_net::labels;

labels! {
    /// What is wrong with a request, coarsely.
    Skipped {
        /// An operator that no machine is asked with.
        Operator = "operator",
        /// An amount that is no quantity, or past what a machine can hold.
        Quantity = "quantity",
        /// An amount below zero.
        NegativeQuantity = "negative_quantity",
        /// A resource name that is none.
        ResourceName = "resource_name",
        /// A penalty that is no quantity.
        Penalty = "penalty",
    }
}

impl From<&AmountError> for Skipped {
    fn from(error: &AmountError) -> Self {
        match error {
            AmountError::Unparseable(_) | AmountError::TooLarge(_) => Self::Quantity,
            AmountError::Negative(_) => Self::NegativeQuantity,
            AmountError::Name(_) => Self::ResourceName,
        }
    }
}

/// Why a request was skipped: which field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untranslatable {
    /// On metrics.
    pub kind: Skipped,
    /// In words, for people.
    pub refusal: Refusal,
}

impl fmt::Display for Untranslatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal.fmt(f)
    }
}
