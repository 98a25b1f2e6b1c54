//! What can be committed (coordinator chapter §5, one variant a row).
//!
//! A command is final once it has shipped: its number, its fields, what is checked
//! and what it does. A change is a new kind, for two versions replay one log.
//!
//! In the log a command is one JSON object, `{"<kind>":{<fields>}}`: readable with
//! any tool, and without a doubt about what an older writer meant. There is one
//! encoding of each command. Reading is strict, for skipping what one does not know
//! would fork the state: an unknown kind, an unknown, missing or repeated field, or
//! any other byte than the encoder's is an error, and the replica halts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    id::{ClusterId, Domain, Key, MachineId, ShardId, TransferId},
    transfer::{TransferKind, TransferRequest},
};

/// The highest kind that this version knows: what a replica says when it joins.
pub const MAX_KIND: u32 = 23;

/// Commands in one Batch.
pub const MAX_BATCH: usize = 1_000;

/// Machines in one transfer.
pub const MAX_TRANSFER_MACHINES: usize = 100;

/// A change of the replicated state. Timestamps, ids and randomness are the
/// proposer's; applying it reads the state, the index and the command alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Command {
    /// A shard registers.
    #[serde(rename = "1")]
    AddShard {
        /// Its name.
        id: ShardId,
        /// Where its clusters reach it.
        address: String,
        /// Unix nanoseconds, by the proposer's clock.
        registered_at: i64,
        /// Its epoch; 0 is unspecified.
        epoch: i64,
        /// Tells processes of one epoch apart; 0 is unspecified.
        instance: u64,
        /// Whether it shares its provider with other shards.
        shared: bool,
    },
    /// An operator's word that the shard is gone.
    #[serde(rename = "2")]
    RemoveShard {
        /// Its name.
        id: ShardId,
    },
    /// A cluster came to a shard first.
    #[serde(rename = "3")]
    BindCluster {
        /// The cluster.
        cluster: ClusterId,
        /// The shard.
        shard: ShardId,
    },
    /// Gives a domain that nobody has.
    #[serde(rename = "4")]
    AssignDomain {
        /// The domain.
        domain: Domain,
        /// Its owner.
        shard: ShardId,
    },
    /// Takes a domain from whoever has it.
    #[serde(rename = "5")]
    UnassignDomain {
        /// The domain.
        domain: Domain,
    },
    /// Replaces a whole row; none deletes it.
    #[serde(rename = "6")]
    SetQuota {
        /// The provider's name.
        provider: String,
        /// Its region.
        region: String,
        /// How much of it each shard may draw.
        per_shard: BTreeMap<ShardId, i32>,
    },
    /// Replaces a provider.
    #[serde(rename = "7")]
    UpsertProvider {
        /// Its name.
        name: String,
        /// Where shards reach it.
        address: String,
        /// Its region.
        region: String,
    },
    /// A shard started anew, moved, or turned to shared scope.
    #[serde(rename = "8")]
    UpdateShard {
        /// Its name.
        id: ShardId,
        /// Where its clusters reach it.
        address: String,
        /// Its epoch.
        epoch: i64,
        /// Its process.
        instance: u64,
        /// Never falls.
        shared: bool,
    },
    /// Several, in order, each with its own result.
    #[serde(rename = "9")]
    Batch {
        /// At most [`MAX_BATCH`], none of them a Batch.
        commands: Vec<Command>,
    },
    /// The fleet opens.
    #[serde(rename = "10")]
    InitFleet {
        /// `<uuid>.<8 hex generation>`.
        fleet_id: String,
    },
    /// A replica joins, or moved.
    #[serde(rename = "12")]
    UpsertReplica {
        /// Its stable id.
        node_id: String,
        /// Changes when its disk is wiped.
        incarnation: u64,
        /// Where its peers dial it.
        raft_address: String,
        /// Where clients are sent to.
        grpc_address: String,
        /// The highest kind that it can apply.
        max_kind: u32,
    },
    /// A replica is gone.
    #[serde(rename = "13")]
    RemoveReplica {
        /// Its stable id.
        node_id: String,
    },
    /// Machines are to go from one shard to another.
    #[serde(rename = "14")]
    BeginTransfer {
        /// Its name.
        id: TransferId,
        /// Of what kind.
        kind: TransferKind,
        /// The donor.
        from: ShardId,
        /// The recipient.
        to: ShardId,
        /// What the donor is asked for.
        request: TransferRequest,
    },
    /// The donor let go.
    #[serde(rename = "15")]
    ReleaseTransfer {
        /// The transfer.
        id: TransferId,
        /// Where the machines go back to.
        home: Domain,
        /// At most [`MAX_TRANSFER_MACHINES`].
        machine_ids: Vec<MachineId>,
    },
    /// Given up before the donor let go.
    #[serde(rename = "16")]
    EndTransfer {
        /// The transfer.
        id: TransferId,
    },
    /// A provider is gone.
    #[serde(rename = "17")]
    RemoveProvider {
        /// Its name.
        name: String,
    },
    /// The recipient is done with machines.
    #[serde(rename = "18")]
    Settle {
        /// The recipient.
        shard: ShardId,
        /// What is settled.
        settled: Vec<Settled>,
    },
    /// Moves a domain between shards.
    #[serde(rename = "19")]
    MoveDomain {
        /// The domain.
        domain: Domain,
        /// Its owner.
        from: ShardId,
        /// The next one.
        to: ShardId,
    },
    /// A shard has let go of what it lost.
    #[serde(rename = "20")]
    Released {
        /// The shard.
        shard: ShardId,
        /// What it let go of.
        keys: Vec<Key>,
        /// The Assignment by which it did.
        version: u64,
    },
    /// An operator's word that every shard has been heard after a restore.
    #[serde(rename = "21")]
    ConfirmRestore {},
    /// What a shard holds is the truth after a restore.
    #[serde(rename = "22")]
    AdoptHoldings {
        /// The shard.
        shard: ShardId,
        /// What it holds.
        holdings: Holdings,
    },
    /// Moves a cluster between shards.
    #[serde(rename = "23")]
    MoveCluster {
        /// The cluster.
        cluster: ClusterId,
        /// Its owner.
        from: ShardId,
        /// The next one.
        to: ShardId,
    },
}

/// One machine of a transfer that its recipient is done with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    /// The transfer.
    pub transfer: TransferId,
    /// The machine.
    pub machine: MachineId,
}

/// All that one shard holds, releases or received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holdings {
    /// Domains held or releasing.
    pub domains: Vec<Domain>,
    /// Clusters held or releasing.
    pub clusters: Vec<ClusterId>,
    /// Machines received and not settled.
    pub machines_in: Vec<MachineIn>,
}

/// A machine that a shard received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineIn {
    /// By this transfer.
    pub transfer: TransferId,
    /// The machine.
    pub machine: MachineId,
    /// Where it goes back to.
    pub home: Domain,
    /// Who owned that when it was given; may be gone.
    pub from: ShardId,
}

/// Bytes that are no command of this version: the replica must halt.
#[derive(Debug, thiserror::Error)]
pub enum UndecodableCommand {
    /// Not a command that this version knows.
    #[error(
        "a command in the log cannot be read: {0}; run the version that wrote it, or a newer one"
    )]
    Unknown(#[from] serde_json::Error),
    /// A command, but not as the encoder writes it.
    #[error(
        "a command in the log is not as this version writes it: it holds what is not known here, \
         or the log is damaged"
    )]
    NotCanonical,
}

impl Command {
    /// Its number; for a Batch the highest of it and what it holds. Every voter and
    /// learner must know it before it is appended.
    #[must_use]
    pub fn kind(&self) -> u32 {
        match self {
            Self::AddShard { .. } => 1,
            Self::RemoveShard { .. } => 2,
            Self::BindCluster { .. } => 3,
            Self::AssignDomain { .. } => 4,
            Self::UnassignDomain { .. } => 5,
            Self::SetQuota { .. } => 6,
            Self::UpsertProvider { .. } => 7,
            Self::UpdateShard { .. } => 8,
            Self::Batch { commands } => {
                commands.iter().map(Self::kind).max().unwrap_or_default().max(9)
            }
            Self::InitFleet { .. } => 10,
            Self::UpsertReplica { .. } => 12,
            Self::RemoveReplica { .. } => 13,
            Self::BeginTransfer { .. } => 14,
            Self::ReleaseTransfer { .. } => 15,
            Self::EndTransfer { .. } => 16,
            Self::RemoveProvider { .. } => 17,
            Self::Settle { .. } => 18,
            Self::MoveDomain { .. } => 19,
            Self::Released { .. } => 20,
            Self::ConfirmRestore {} => 21,
            Self::AdoptHoldings { .. } => 22,
            Self::MoveCluster { .. } => 23,
        }
    }

    /// As it stands in the log.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Nothing in a command can fail: keys of maps are texts, numbers are whole,
        // and a vector takes every byte.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads what [`Command::encode`] wrote, and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, UndecodableCommand> {
        let command: Self = serde_json::from_slice(bytes)?;
        if command.encode() != bytes {
            return Err(UndecodableCommand::NotCanonical);
        }
        Ok(command)
    }
}
