//! Regions, zones, racks.

use serde::Deserialize;

/// The label that tells a machine's region.
pub const REGION_LABEL: &str = "topology.kubernetes.io/region";
/// The label that tells a machine's rack.
pub const RACK_LABEL: &str = "topology.bigfleet/rack";

/// Several zones.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Unique in its cloud.
    pub name: String,
    /// At least one.
    pub zones: Vec<Zone>,
}

/// Several racks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Unique in its cloud.
    pub name: String,
    /// How many, named `<zone>-rack-<n>` from 0 on.
    #[serde(default = "ten")]
    pub racks: usize,
}

const fn ten() -> usize {
    10
}

impl Zone {
    /// The rack of the machine that is number `n` in this zone.
    #[must_use]
    pub fn rack(&self, number: usize) -> String {
        format!("{}-rack-{}", self.name, number % self.racks.max(1))
    }
}

/// One region with these zones, of ten racks each.
#[must_use]
pub fn region(name: &str, zones: &[&str]) -> Region {
    let zone = |name: &&str| Zone { name: (*name).to_owned(), racks: ten() };
    Region { name: name.to_owned(), zones: zones.iter().map(zone).collect() }
}
