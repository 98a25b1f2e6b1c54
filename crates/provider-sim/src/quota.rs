//! The account's limits.

use std::collections::BTreeMap;

use bigfleet_provider_kit::{CapacityType, CloudError};
use serde::Deserialize;

use crate::tier::{Tier, capacity_named, name_of};

/// Most hosts at once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// By instance type.
    pub types: BTreeMap<String, usize>,
    /// By capacity type.
    pub capacities: BTreeMap<String, usize>,
}

impl Quotas {
    /// Whether anything is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.is_empty() && self.capacities.is_empty()
    }

    /// A name in [`Quotas::capacities`] that is none.
    pub(crate) fn unknown_capacity(&self) -> Option<&String> {
        self.capacities.keys().find(|name| capacity_named(name).is_none())
    }

    /// Refuses one host more of this tier; `held` are those that exist or are coming.
    pub(crate) fn check<'a>(
        &self,
        tier: &Tier,
        held: impl Iterator<Item = &'a Tier>,
    ) -> Result<(), CloudError> {
        let (mut of_type, mut of_capacity) = (0, 0);
        for other in held {
            of_type += usize::from(other.instance_type == tier.instance_type);
            of_capacity += usize::from(other.capacity == tier.capacity);
        }
        let full = |name: &str, limit: Option<&usize>, held: usize| match limit {
            Some(limit) if held >= *limit => {
                Err(CloudError::Quota(format!("at most {limit} hosts of {name}")))
            }
            _ => Ok(()),
        };
        full(&tier.instance_type, self.types.get(&tier.instance_type), of_type)?;
        let capacity: CapacityType = tier.capacity;
        full(name_of(capacity), self.capacities.get(name_of(capacity)), of_capacity)
    }
}
