//! The names that the tables are keyed by.

use bigfleet_model::text_newtype;
use serde::{Deserialize, Serialize};

/// A text newtype as serde sees it: the text.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident) => {
        text_newtype! {
            $(#[$meta])*
            $name
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

named! {
    /// Names a shard.
    ShardId
}

named! {
    /// Names a cluster.
    ClusterId
}

named! {
    /// Names a machine, to its provider alone.
    MachineId
}

named! {
    /// Names a transfer; never reused.
    TransferId
}

named! {
    /// A label's key or value.
    Label
}

/// A topology domain: one value of one topology key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// The label's key, `topology.kubernetes.io/zone`.
    pub key: Label,
    /// Its value.
    pub value: Label,
}

impl Domain {
    /// The domain `key=value`.
    #[must_use]
    pub fn new(key: &str, value: &str) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// What a shard holds: the key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    /// A cluster, with the machines bound to it.
    #[serde(rename = "cluster")]
    Cluster(ClusterId),
    /// A domain, with the unbound machines in it.
    #[serde(rename = "domain")]
    Domain(Domain),
}

impl Key {
    /// The cluster, if it is one.
    #[must_use]
    pub const fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Cluster(cluster) => Some(cluster),
            Self::Domain(_) => None,
        }
    }

    /// The domain, if it is one.
    #[must_use]
    pub const fn domain(&self) -> Option<&Domain> {
        match self {
            Self::Cluster(_) => None,
            Self::Domain(domain) => Some(domain),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cluster(cluster) => write!(f, "cluster {cluster}"),
            Self::Domain(domain) => write!(f, "domain {domain}"),
        }
    }
}
