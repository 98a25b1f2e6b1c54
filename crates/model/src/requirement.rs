//! Constraints on machines, and when a machine meets them (engine chapter §1.2).

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;

wire_enum! {
    /// How a requirement compares.
    Operator as wire::node_selector_requirement::Operator {
        /// Matches nothing.
        Unspecified = 0,
        /// Present and listed.
        In = 1,
        /// Absent, or not listed.
        NotIn = 2,
        /// Present.
        Exists = 3,
        /// Absent.
        DoesNotExist = 4,
        /// All machines of the need share one value of the key.
        Same = 5,
    }
}

/// One constraint; all constraints of a profile are ANDed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    /// Attribute it looks at.
    pub key: String,
    /// How it compares.
    pub operator: Operator,
    /// What it compares with; sorted and without duplicates inside a profile.
    pub values: Vec<String>,
}

/// What requirements look at.
pub trait Attributes {
    /// The value of an attribute, if the machine has it.
    fn attribute(&self, key: &str) -> Option<&str>;
}

impl Attributes for BTreeMap<String, String> {
    fn attribute(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl Requirement {
    /// Whether these attributes meet the requirement. For `Same` this is only
    /// candidacy: that all machines share a value is decided over all of them.
    pub fn matches(&self, attributes: &impl Attributes) -> bool {
        let value = attributes.attribute(&self.key);
        let listed = |value: &str| self.values.iter().any(|known| known == value);
        match self.operator {
            Operator::Unspecified => false,
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Same => value.is_some_and(|value| self.values.is_empty() || listed(value)),
        }
    }
}

impl From<&Requirement> for wire::NodeSelectorRequirement {
    fn from(requirement: &Requirement) -> Self {
        Self {
            key: requirement.key.clone(),
            operator: requirement.operator.to_wire(),
            values: requirement.values.clone(),
        }
    }
}
