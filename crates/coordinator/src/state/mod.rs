//! The replicated state machine (coordinator chapter §5): pure, and the same on every
//! replica. [`State::apply`] reads the state, the index and the command; no clock, no
//! randomness, no environment, no float, no hash map.
//!
//! `command` is what can be committed and how it stands in the log; `apply` leads each
//! kind to its rule: `ownership` (clusters and domains), `registry` (shards, quotas,
//! providers, replicas, the fleet), `transfers`, `recovery`. `assignment` and `read`
//! answer from it; `payload` writes and loads it.

mod apply;
mod assignment;
mod command;
mod id;
mod ownership;
mod payload;
mod read;
mod recovery;
mod refused;
mod registry;
mod rows;
mod transfer;
mod transfers;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use assignment::{Assignment, QuotaSlice, TransferMachine};
pub use command::{
    Command, Holdings, MAX_BATCH, MAX_KIND, MAX_TRANSFER_MACHINES, MachineIn, Settled,
    UndecodableCommand,
};
pub use id::{ClusterId, Domain, Key, Label, MachineId, ShardId, TransferId};
pub use payload::{FORMAT_VERSION, PayloadError};
pub use read::Counts;
pub use recovery::{ChangedHands, Recovered};
pub use refused::{Effect, Refused};
pub use registry::{Provider, QuotaKey, Replica, Shard};
use rows::Rows;
pub use rows::{Releasing, Row};
pub use transfer::{Transfer, TransferKind, TransferPhase, TransferRequest, TransferRequirement};

/// All tables. Names are shared, so that a copy for a snapshot is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    applied_index: u64,
    kind_in_use: u32,
    fleet_id: Option<String>,
    shards: BTreeMap<ShardId, Shard>,
    rows: Rows,
    ownership_key: Option<Label>,
    quotas: BTreeMap<QuotaKey, BTreeMap<ShardId, i32>>,
    providers: BTreeMap<String, Provider>,
    replicas: BTreeMap<String, Replica>,
    transfers: BTreeMap<TransferId, Transfer>,
    recovering: bool,
    adopted: Adopted,
}

/// What shards were found to hold since a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Adopted {
    shards: BTreeSet<ShardId>,
    keys: BTreeSet<Key>,
    /// Keys whose owner is no longer the backup's, and who that was.
    changed: BTreeMap<Key, Option<ShardId>>,
    /// When the backup was made; 0 if it does not say.
    backup_unix_ms: u64,
}
