//! What is wrong with a request whatever the machine (provider chapter §1,
//! step 2). Nothing is ever cut to fit.

use std::collections::BTreeMap;

use super::token::Token;
use crate::mutant::{Mutant, active};

/// Largest Configure that a provider takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of `bootstrap_blob`.
    pub blob_bytes: usize,
    /// Keys of `shard_metadata`.
    pub metadata_keys: usize,
    /// Bytes of its keys and values together.
    pub metadata_bytes: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self { blob_bytes: 4 << 20, metadata_keys: 256, metadata_bytes: 64 << 10 }
    }
}

/// A field that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BadArgument {
    /// As the wire calls it.
    pub field: &'static str,
    /// What is wrong, and what would be right.
    pub problem: String,
}

fn bad(field: &'static str, problem: impl Into<String>) -> BadArgument {
    BadArgument { field, problem: problem.into() }
}

impl BadArgument {
    /// Every call but List names a machine.
    pub fn check_id(field: &'static str, id: &str) -> Result<(), Self> {
        if id.is_empty() { Err(bad(field, "empty; name a machine")) } else { Ok(()) }
    }

    /// Numbers need a shard that counts them.
    pub fn check_token(token: &Token) -> Result<(), Self> {
        match token.is_valid() {
            true => Ok(()),
            false => Err(bad("shard_id", "empty although an epoch or a sequence is set")),
        }
    }

    /// Seconds, not negative.
    pub fn check_grace(seconds: i64) -> Result<(), Self> {
        match seconds >= 0 {
            true => Ok(()),
            false => Err(bad("grace_period_seconds", format!("{seconds} is negative; send >= 0"))),
        }
    }

    /// 0 means all.
    pub fn check_max_results(max_results: i32) -> Result<(), Self> {
        match max_results >= 0 {
            true => Ok(()),
            false => Err(bad("max_results", format!("{max_results} is negative; send >= 0"))),
        }
    }

    /// Cluster, blob and metadata of a Configure.
    pub fn check_configure(
        caps: Caps,
        cluster: &str,
        blob: &[u8],
        metadata: &BTreeMap<String, String>,
    ) -> Result<(), Self> {
        if cluster.is_empty() && !active(Mutant::EmptyClusterOk) {
            return Err(bad("cluster_id", "empty; name a cluster"));
        }
        let over = |size: usize, cap: usize, unit: &str| {
            (size > cap).then(|| format!("{size} {unit} are over the cap of {cap}"))
        };
        if let Some(problem) = over(blob.len(), caps.blob_bytes, "bytes") {
            return Err(bad("bootstrap_blob", problem));
        }
        let bytes = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
        let keys = over(metadata.len(), caps.metadata_keys, "keys");
        match keys.or_else(|| over(bytes, caps.metadata_bytes, "bytes")) {
            Some(problem) => Err(bad("shard_metadata", problem)),
            None => Ok(()),
        }
    }
}
