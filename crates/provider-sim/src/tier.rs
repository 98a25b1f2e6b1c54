//! Many machines of one kind.

use std::{collections::BTreeMap, fmt};

use bigfleet_provider_kit::CapacityType;
use serde::{Deserialize, Deserializer, de};

/// A kind of machine that a cloud offers, and how many of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Unique in its cloud; part of every machine id.
    pub name: String,
    /// Instance type.
    #[serde(rename = "type")]
    pub instance_type: String,
    /// How it is paid for: `BARE_METAL`, `RESERVED`, `ON_DEMAND`, `SPOT`.
    #[serde(deserialize_with = "capacity")]
    pub capacity: CapacityType,
    /// Dollars an hour.
    #[serde(default)]
    pub price: f64,
    /// Interruptions an hour.
    #[serde(default)]
    pub probability: f64,
    /// How many.
    pub count: usize,
    /// Base shape.
    #[serde(deserialize_with = "quantities")]
    pub resources: BTreeMap<String, String>,
    /// Real capacity.
    #[serde(default, deserialize_with = "quantities")]
    pub allocatable: BTreeMap<String, String>,
    /// Whether the hosts exist from the beginning.
    #[serde(default)]
    pub state: Birth,
    /// In these zones by turns; empty means in all of the cloud.
    #[serde(default)]
    pub zones: Vec<String>,
    /// More attributes.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// What a slot is before anybody touches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Birth {
    /// A slot without a host.
    #[default]
    #[serde(rename = "SPECULATIVE", alias = "S", alias = "speculative")]
    Speculative,
    /// A host that waits.
    #[serde(rename = "IDLE", alias = "I", alias = "idle")]
    Idle,
}

impl Tier {
    /// Whether its hosts are not ours to buy again.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        !matches!(self.capacity, CapacityType::OnDemand | CapacityType::Spot)
    }
}

const CAPACITIES: [(&str, CapacityType); 4] = [
    ("BARE_METAL", CapacityType::BareMetal),
    ("RESERVED", CapacityType::Reserved),
    ("ON_DEMAND", CapacityType::OnDemand),
    ("SPOT", CapacityType::Spot),
];

/// The capacity type of this name.
pub(crate) fn capacity_named(name: &str) -> Option<CapacityType> {
    CAPACITIES.iter().find(|(known, _)| *known == name).map(|(_, capacity)| *capacity)
}

/// Its name.
pub(crate) fn name_of(capacity: CapacityType) -> &'static str {
    CAPACITIES.iter().find(|(_, known)| *known == capacity).map_or("UNSPECIFIED", |(name, _)| name)
}

fn capacity<'de, D: Deserializer<'de>>(from: D) -> Result<CapacityType, D::Error> {
    let name = String::deserialize(from)?;
    capacity_named(&name).ok_or_else(|| {
        de::Error::custom(format!("{name:?}: write BARE_METAL, RESERVED, ON_DEMAND or SPOT"))
    })
}

/// A quantity may be written as a number: `cpu: 8`.
fn quantities<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let texts = BTreeMap::<String, Text>::deserialize(from)?;
    Ok(texts.into_iter().map(|(key, text)| (key, text.0)).collect())
}

struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 8, 7500m or 28Gi")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
