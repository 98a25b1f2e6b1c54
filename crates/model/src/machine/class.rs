//! What many machines have in common.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use bigfleet_wire::v1alpha1 as wire;

use crate::{requirement::Attributes, resources::Resources};

/// The label that a machine's instance type answers.
pub const INSTANCE_TYPE_LABEL: &str = "node.kubernetes.io/instance-type";
/// The label that a machine's zone answers.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

wire_enum! {
    /// How a machine is paid for.
    CapacityType as wire::CapacityType {
        /// Not told, or a kind we do not know.
        Unspecified = 0,
        /// Owned hardware.
        BareMetal = 1,
        /// Paid for in advance.
        Reserved = 2,
        /// Paid by use.
        OnDemand = 3,
        /// Paid by use, may be taken away.
        Spot = 4,
    }
}

/// Resources as a provider declared them: the text is echoed unchanged, the
/// vector is what decisions use.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    pub(crate) text: BTreeMap<String, String>,
    pub(crate) vector: Resources,
}

impl Declared {
    /// As declared.
    pub const fn text(&self) -> &BTreeMap<String, String> {
        &self.text
    }

    /// Whole milli-units, rounded down.
    pub const fn vector(&self) -> &Resources {
        &self.vector
    }

    fn to_wire(&self) -> Option<wire::Resources> {
        (!self.text.is_empty()).then(|| wire::Resources { resources: self.text.clone() })
    }
}

impl PartialEq for Declared {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Everything about a machine but its id, its binding and where it stands in its
/// life. Machines of one class are interchangeable, so they share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Answers [`INSTANCE_TYPE_LABEL`].
    pub instance_type: String,
    /// Answers [`ZONE_LABEL`].
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// Dollars; finite, not negative, never −0.
    pub price_per_hour: f64,
    /// Hourly; in `[0,1]`, never −0.
    pub interruption_probability: f64,
    /// More attributes for matching.
    pub labels: BTreeMap<String, String>,
    /// Base shape.
    pub resources: Declared,
    /// Real capacity, if the provider knows it.
    pub allocatable: Declared,
}

/// Both numbers are checked at the gate and never NaN.
impl Eq for Class {}

impl Hash for Class {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.instance_type.hash(state);
        self.zone.hash(state);
        self.capacity_type.hash(state);
        self.price_per_hour.to_bits().hash(state);
        self.interruption_probability.to_bits().hash(state);
        self.labels.hash(state);
        self.resources.text.hash(state);
        self.allocatable.text.hash(state);
    }
}

impl Class {
    /// What the machine can hold.
    pub fn capacity(&self) -> &Resources {
        let known =
            if self.allocatable.text.is_empty() { &self.resources } else { &self.allocatable };
        &known.vector
    }

    /// Writes the shared part of a wire machine.
    pub(crate) fn write_to(&self, machine: &mut wire::Machine) {
        machine.instance_type.clone_from(&self.instance_type);
        machine.zone.clone_from(&self.zone);
        machine.capacity_type = self.capacity_type.to_wire();
        machine.price_per_hour = self.price_per_hour;
        machine.interruption_probability = self.interruption_probability;
        machine.labels.clone_from(&self.labels);
        machine.resources = self.resources.to_wire();
        machine.allocatable = self.allocatable.to_wire();
    }
}

impl Attributes for Class {
    fn attribute(&self, key: &str) -> Option<&str> {
        let field = match key {
            INSTANCE_TYPE_LABEL => self.instance_type.as_str(),
            ZONE_LABEL => self.zone.as_str(),
            _ => "",
        };
        if field.is_empty() { self.labels.attribute(key) } else { Some(field) }
    }
}
