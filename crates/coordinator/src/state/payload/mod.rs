//! The state as a file (coordinator chapter §10): one JSON object with sorted keys. What
//! a base coordinator wrote can be loaded; what goes past it has keys of its own.

mod load;
mod time;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ClusterId, Label, MachineId, Refused, ShardId, State, TransferId, TransferKind, TransferPhase,
    TransferRequest,
};

/// The newest format that this version reads and the one it writes.
pub const FORMAT_VERSION: u32 = 1;

/// A payload that is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// Not JSON of this shape.
    #[error("the state cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Written by a newer version.
    #[error(
        "the state has format {found}, this version reads up to {FORMAT_VERSION}; use a newer one"
    )]
    TooNew {
        /// Its format.
        found: u32,
    },
    /// An entry that no command could have made.
    #[error("{table}: {refused}")]
    Invalid {
        /// The table.
        table: &'static str,
        /// Why.
        refused: Refused,
    },
    /// Two entries with one key.
    #[error("{table}: {key} is there twice")]
    Twice {
        /// The table.
        table: &'static str,
        /// The key.
        key: String,
    },
    /// An entry that names what is not there.
    #[error("{table}: {key} names {missing}, which is not there")]
    Dangling {
        /// The table.
        table: &'static str,
        /// The entry.
        key: String,
        /// What it names.
        missing: String,
    },
    /// An entry that contradicts itself or another.
    #[error("{table}: {key}: {why}")]
    Contradicts {
        /// The table.
        table: &'static str,
        /// The entry.
        key: String,
        /// How.
        why: &'static str,
    },
}

impl State {
    /// The state as bytes; equal states give equal bytes.
    #[must_use]
    pub fn to_payload(&self) -> Vec<u8> {
        // Keys of maps are texts and a vector takes every byte: nothing can fail.
        serde_json::to_vec(&write::payload(self)).unwrap_or_default()
    }

    /// Loads a payload: every entry goes through the rule that made it.
    pub fn from_payload(bytes: &[u8]) -> Result<Self, PayloadError> {
        #[derive(Deserialize)]
        struct Header {
            #[serde(rename = "FormatVersion", default)]
            format_version: u32,
        }
        // First, for a newer format may have other shapes.
        let Header { format_version } = serde_json::from_slice(bytes)?;
        if format_version > FORMAT_VERSION {
            return Err(PayloadError::TooNew { found: format_version });
        }
        load::state(serde_json::from_slice(bytes)?)
    }
}

/// Fields are in the order of their keys, here and below.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Payload {
    #[serde(rename = "FormatVersion")]
    format_version: u32,
    adopted: AdoptedPayload,
    applied_index: u64,
    #[serde(deserialize_with = "or_empty")]
    cluster_to_shard: BTreeMap<ClusterId, ShardId>,
    #[serde(deserialize_with = "or_empty")]
    domain_to_shard: Vec<DomainRow>,
    fleet_id: Option<String>,
    kind_in_use: u32,
    ownership_key: Option<Label>,
    #[serde(deserialize_with = "or_empty")]
    providers: Vec<ProviderRow>,
    #[serde(deserialize_with = "or_empty")]
    quotas: Vec<QuotaRow>,
    recovering: bool,
    releasing: Vec<Mark>,
    replicas: BTreeMap<String, ReplicaRow>,
    #[serde(deserialize_with = "or_empty")]
    shards: Vec<ShardRow>,
    transfers: BTreeMap<TransferId, TransferRow>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct AdoptedPayload {
    #[serde(skip_serializing_if = "is_zero")]
    backup_unix_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<ChangedRow>,
    keys: Vec<KeyRow>,
    shards: Vec<ShardId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct DomainKey {
    #[serde(rename = "Key")]
    key: Label,
    #[serde(rename = "Value")]
    value: Label,
}

#[derive(Debug, Serialize, Deserialize)]
enum KeyRow {
    #[serde(rename = "cluster")]
    Cluster(ClusterId),
    #[serde(rename = "domain")]
    Domain(DomainKey),
}

/// A key that is not the backup's owner's any more.
#[derive(Debug, Serialize, Deserialize)]
struct ChangedRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<ShardId>,
    key: KeyRow,
}

#[derive(Debug, Serialize, Deserialize)]
struct DomainRow {
    domain: DomainKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    releasing_from: Option<ShardId>,
    shard: ShardId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
}

/// A mark whose row has no place for it: it has no owner, or is a cluster's, whose
/// value is the owner's name alone.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<DomainKey>,
    releasing_from: ShardId,
    since: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct ProviderRow {
    #[serde(rename = "Address", default)]
    address: String,
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Region", default)]
    region: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct AccountKey {
    #[serde(rename = "Provider")]
    provider: String,
    #[serde(rename = "Region")]
    region: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct QuotaRow {
    key: AccountKey,
    #[serde(default, deserialize_with = "or_empty")]
    per_shard: BTreeMap<ShardId, i32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ReplicaRow {
    #[serde(default)]
    grpc_address: String,
    #[serde(default)]
    incarnation: u64,
    #[serde(default)]
    max_kind: u32,
    #[serde(default)]
    raft_address: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShardRow {
    #[serde(rename = "Address", default)]
    address: String,
    #[serde(rename = "ID")]
    id: ShardId,
    /// Always the zero time: heartbeats are no part of the state.
    #[serde(rename = "LastHeartbeat", skip_deserializing)]
    last_heartbeat: String,
    #[serde(rename = "RegisteredAt", default)]
    registered_at: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    changed_at: u64,
    #[serde(default, skip_serializing_if = "is_zero_epoch")]
    epoch: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    instance: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct TransferRow {
    from: ShardId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<DomainKey>,
    kind: TransferKind,
    #[serde(default)]
    machine_ids: Vec<MachineId>,
    phase: TransferPhase,
    #[serde(default)]
    request: TransferRequest,
    to: ShardId,
}

/// Some writers say `null` for an empty list or map.
fn or_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde calls")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde calls")]
const fn is_zero_epoch(number: &i64) -> bool {
    *number == 0
}
