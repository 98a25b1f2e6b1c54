//! What clouds there are, and how they behave.

mod check;
mod fleets;
mod read;

use std::{fs, path::Path, time::Duration};

pub use fleets::ONLY_CLOUD;
pub(crate) use read::{from_value, read};
use serde::Deserialize;

use crate::{
    Error, latency::Latency, price_walk::PriceWalk, quota::Quotas, rate_limit::ApiRate, span,
    stock::StockConfig, tier::Tier, topology::Region,
};

/// A whole simulation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Every draw follows from it.
    #[serde(default)]
    pub seed: u64,
    /// Behind one server; machine ids begin with the cloud's name and `-`.
    pub clouds: Vec<CloudConfig>,
}

/// One cloud.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// Lower-case letters and digits.
    pub name: String,
    /// Where it is.
    pub regions: Vec<Region>,
    /// What it offers.
    pub tiers: Vec<Tier>,
    /// How long it takes.
    #[serde(default)]
    pub latency: Latency,
    /// The account's limits.
    #[serde(default)]
    pub quotas: Quotas,
    /// The cloud's limits.
    #[serde(default)]
    pub stock: Vec<StockConfig>,
    /// Prices that move; none stand still.
    #[serde(default)]
    pub price_walk: Option<PriceWalk>,
    /// What goes wrong.
    #[serde(default)]
    pub mishaps: Mishaps,
}

/// What goes wrong, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mishaps {
    /// Share of Creates that fail for good.
    pub create_error_rate: f64,
    /// Share of bootstraps whose node never becomes Ready.
    pub readiness_fail_rate: f64,
    /// Share of hosts that die within an hour without a word.
    pub host_death_rate: f64,
    /// Spot capacity that is taken back.
    pub interruptions: Interruptions,
    /// Calls of the API; none are unlimited.
    pub api_rate: Option<ApiRate>,
}

/// Spot capacity that is taken back: a Poisson process whose rate makes the declared
/// probability that of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Interruptions {
    /// 1 is as often as declared, 0 is never.
    pub factor: f64,
    /// From the termination notice to the end.
    #[serde(with = "span")]
    pub notice: Duration,
    /// How long before the notice there is an advice to rebalance; 0 is none.
    #[serde(with = "span")]
    pub rebalance: Duration,
}

impl Default for Interruptions {
    fn default() -> Self {
        let notice = Duration::from_secs(120);
        Self { factor: 1.0, notice, rebalance: Duration::ZERO }
    }
}

impl Interruptions {
    /// Declared, but never happening.
    #[must_use]
    pub fn never() -> Self {
        Self { factor: 0.0, ..Self::default() }
    }
}

impl Config {
    /// Reads a YAML document and checks it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let config: Self = read(text)?;
        config.check()?;
        Ok(config)
    }

    /// [`Config::parse`] of a file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(failed)?;
        Self::parse(&text)
    }
}
