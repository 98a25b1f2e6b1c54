//! The file as it is written.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use bigfleet_provider_kit::{CapacityType, flags::duration};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Visitor},
};
use serde_json::Value;

use super::{Wrong, secrets};

/// Installing metal takes its time.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30 * 60);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) provider: String,
    #[serde(default)]
    pub(super) defaults: Defaults,
    pub(super) hooks: Hooks,
    pub(super) machines: Vec<RawMachine>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    pub(super) capacity_type: Option<Capacity>,
    pub(super) instance_type: Option<String>,
    pub(super) zone: Option<String>,
    pub(super) price_per_hour: Option<f64>,
    pub(super) interruption_probability: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hooks {
    pub(super) dir: PathBuf,
    #[serde(default = "timeout", deserialize_with = "time")]
    pub(super) timeout: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMachine {
    pub(super) id: String,
    pub(super) host: String,
    pub(super) instance_type: Option<String>,
    pub(super) zone: Option<String>,
    pub(super) capacity_type: Option<Capacity>,
    pub(super) price_per_hour: Option<f64>,
    pub(super) interruption_probability: Option<f64>,
    #[serde(default)]
    pub(super) resources: BTreeMap<String, Quantity>,
    #[serde(default)]
    pub(super) allocatable: BTreeMap<String, Quantity>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    pub(super) bmc: Option<Bmc>,
}

/// How a machine's board is reached.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bmc {
    /// Host name or address.
    pub address: String,
    /// The name of a secret that the hooks know how to look up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// How a machine is paid for.
#[derive(Clone)]
pub(super) enum Capacity {
    Owned(CapacityType),
    Other,
}

impl Default for Capacity {
    fn default() -> Self {
        Self::Owned(CapacityType::BareMetal)
    }
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match String::deserialize(deserializer)?.as_str() {
            "BARE_METAL" => Self::Owned(CapacityType::BareMetal),
            "RESERVED" => Self::Owned(CapacityType::Reserved),
            _ => Self::Other,
        })
    }
}

/// `"64"`, `256Gi`, or a bare number as people write it.
pub(super) struct Quantity(String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 64 or 256Gi")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

pub(super) fn texts(quantities: BTreeMap<String, Quantity>) -> BTreeMap<String, String> {
    quantities.into_iter().map(|(key, Quantity(text))| (key, text)).collect()
}

fn timeout() -> Duration {
    TIMEOUT
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let time = duration::parse(&String::deserialize(deserializer)?).map_err(Error::custom)?;
    if time.is_zero() { Err(Error::custom("must be above 0")) } else { Ok(time) }
}

/// Reads YAML, looks for secrets that do not belong there, then for everything else.
pub(super) fn read(text: &str) -> Result<File, Wrong> {
    let mut options = serde_saphyr::Options::default();
    // A line of the file may hold what must not be in a log.
    options.with_snippet = false;
    // An operator's own file of a large fleet, not a stranger's.
    options.budget = serde_saphyr::budget! {
        max_events: 100_000_000,
        max_nodes: 50_000_000,
        max_total_scalar_bytes: 1 << 30,
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| ("yaml".to_owned(), format!("{error}; correct the syntax")))?;
    secrets::refuse_inline(&value)?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match error.path().to_string() {
            path if path == "." => "the top level".to_owned(),
            path => path,
        };
        (path, error.into_inner().to_string())
    })
}
