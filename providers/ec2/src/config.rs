//! `--config FILE`: what is offered, and how instances of this account are launched.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bigfleet_provider_kit::CapacityType;
use serde::{Deserialize, Serialize};

/// Why the file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("--config {path}: {problem}")]
    Unreadable {
        /// Which file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It says something that cannot be.
    #[error("--config: {field}: {problem}")]
    Invalid {
        /// Which field.
        field: String,
        /// What is wrong and what to do.
        problem: String,
    },
}

/// How capacity is bought. Only what is rented: a provider gives back nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capacity {
    /// At the list price.
    OnDemand,
    /// At the market's price, may be taken away.
    Spot,
}

impl Capacity {
    /// In slot ids and tags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }

    /// The inverse of [`Capacity::name`].
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::OnDemand, Self::Spot].into_iter().find(|capacity| capacity.name() == name)
    }

    /// On the wire.
    #[must_use]
    pub const fn capacity_type(self) -> CapacityType {
        match self {
            Self::OnDemand => CapacityType::OnDemand,
            Self::Spot => CapacityType::Spot,
        }
    }
}

/// So many slots of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offering {
    /// Instance type.
    #[serde(rename = "type")]
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
    /// How it is bought.
    pub capacity: Capacity,
    /// How many slots.
    pub count: u32,
    /// As Kubernetes quantities; from the type catalogue if empty.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
    /// What is left for pods, if known.
    #[serde(default)]
    pub allocatable: BTreeMap<String, String>,
    /// More attributes for matching.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// How instances are launched. Generic: the same for every machine and every cluster,
/// as it cannot be changed after the launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Account {
    /// Image.
    pub image: String,
    /// Subnet of each zone.
    pub subnets: BTreeMap<String, String>,
    /// Security groups.
    pub security_groups: Vec<String>,
    /// Instance profile.
    pub instance_profile: String,
    /// Script of the first boot; no cluster's secret belongs here.
    pub user_data: String,
    /// More tags of every instance.
    pub tags: BTreeMap<String, String>,
}

impl Account {
    /// The parameters of a launch in this zone.
    #[must_use]
    pub fn params(&self, zone: &str) -> Vec<(String, String)> {
        let mut params = Vec::new();
        let mut add = |key: String, value: &str| {
            if !value.is_empty() {
                params.push((key, value.to_owned()));
            }
        };
        add("ImageId".into(), &self.image);
        add("SubnetId".into(), self.subnets.get(zone).map_or("", String::as_str));
        add("IamInstanceProfile.Name".into(), &self.instance_profile);
        for (number, group) in (1..).zip(&self.security_groups) {
            add(format!("SecurityGroupId.{number}"), group);
        }
        add("UserData".into(), &STANDARD.encode(&self.user_data));
        params
    }
}

/// Fallbacks where nobody tells a price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Pinned {
    /// Dollars an hour at the list price.
    pub on_demand: Option<f64>,
    /// Dollars an hour in the market.
    pub spot: Option<f64>,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ec2Config {
    /// Region of the signatures, of prices and of the advisor.
    pub region: String,
    /// How instances are launched.
    #[serde(default)]
    pub account: Account,
    /// What is offered.
    pub offerings: Vec<Offering>,
    /// Prices by type, for want of fresher ones.
    #[serde(default)]
    pub pinned_prices: BTreeMap<String, Pinned>,
    /// Region of the price list's endpoint, which few regions have.
    #[serde(default = "pricing_region")]
    pub pricing_region: String,
    /// Where the advisor's document is; empty knows no frequency of interruption.
    #[serde(default)]
    pub spot_advisor_url: String,
    /// Kubeconfig of each cluster: readiness is then read from the clusters.
    #[serde(default)]
    pub kubeconfigs: BTreeMap<String, PathBuf>,
    /// Rows a page of a description.
    #[serde(default = "page_size")]
    pub page_size: u16,
    /// Largest part of a blob in one command.
    #[serde(default = "command_bytes")]
    pub command_bytes: usize,
}

fn pricing_region() -> String {
    "us-east-1".to_owned()
}

const fn page_size() -> u16 {
    1000
}

const fn command_bytes() -> usize {
    32 << 10
}

impl Ec2Config {
    /// Reads and checks it.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable =
            |problem: String| ConfigError::Unreadable { path: path.display().to_string(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let config: Self =
            serde_saphyr::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// What no reader of YAML can know.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field: String, problem: &str| {
            Err(ConfigError::Invalid { field, problem: problem.to_owned() })
        };
        if self.region.is_empty() {
            return refuse("region".into(), "empty; name the region");
        }
        if !(1..=1000).contains(&self.page_size) {
            return refuse("page_size".into(), "out of range; the API takes 1 to 1000");
        }
        if self.command_bytes == 0 {
            return refuse("command_bytes".into(), "0; no blob would ever arrive");
        }
        if self.offerings.is_empty() {
            return refuse("offerings".into(), "none; there is nothing to provide");
        }
        let mut seen = BTreeSet::new();
        for (number, offering) in self.offerings.iter().enumerate() {
            let field = |name: &str| format!("offerings[{number}].{name}");
            for (name, value) in [("type", &offering.instance_type), ("zone", &offering.zone)] {
                if value.is_empty() || value.contains('/') {
                    return refuse(field(name), "empty, or has a slash; it is a part of slot ids");
                }
            }
            if !seen.insert((&offering.instance_type, &offering.zone, offering.capacity)) {
                return refuse(field("type"), "offered twice with this zone and capacity; add up");
            }
        }
        Ok(())
    }

    /// All types, once.
    #[must_use]
    pub fn types(&self) -> BTreeSet<&str> {
        self.offerings.iter().map(|offering| offering.instance_type.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
region: eu-west-1
account: {image: ami-1, subnets: {eu-west-1a: subnet-1}, security_groups: [sg-1]}
offerings:
  - {type: m6i.large, zone: eu-west-1a, capacity: on-demand, count: 2}
  - {type: m6i.large, zone: eu-west-1a, capacity: spot, count: 1}
pinned_prices: {m6i.large: {on-demand: 0.107}}
";

    fn parse(text: &str) -> Result<Ec2Config, ConfigError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yaml");
        std::fs::write(&path, text).unwrap();
        Ec2Config::read(&path)
    }

    #[test]
    fn a_file_is_read() {
        let config = parse(FILE).unwrap();
        assert_eq!(config.offerings.len(), 2);
        assert_eq!(config.offerings[1].capacity, Capacity::Spot);
        assert_eq!(config.pinned_prices["m6i.large"].on_demand, Some(0.107));
        let params = config.account.params("eu-west-1a");
        assert!(params.contains(&("SubnetId".into(), "subnet-1".into())));
        assert!(!params.iter().any(|(key, _)| key == "UserData"), "nothing empty is sent");
    }

    #[test]
    fn refusals_name_the_field() {
        let twice = FILE.replace("capacity: spot", "capacity: on-demand");
        for (text, field) in [
            (FILE.replace("eu-west-1\n", "''\n"), "region"),
            (format!("{FILE}page_size: 0\n"), "page_size"),
            (FILE.replace("zone: eu-west-1a, capacity: spot", "zone: a/b, capacity: spot"), "zone"),
            (twice, "offerings[1].type"),
            (FILE.replace("capacity: spot", "capacity: owned"), "owned"),
            (format!("{FILE}regoin: x\n"), "regoin"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}
