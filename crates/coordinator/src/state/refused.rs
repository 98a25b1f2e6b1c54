//! What comes of a command.

use serde::{Deserialize, Serialize};

use super::{
    Recovered,
    id::{ClusterId, Domain, Label, ShardId},
};

/// A command was valid, and this is what it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// All was as the command wants it.
    Unchanged,
    /// It did what it says.
    Changed,
    /// A domain has another owner: shards that get no Assignment are told.
    DomainMoved {
        /// The domain.
        domain: Domain,
        /// Who lost it.
        from: Option<ShardId>,
        /// Who gained it.
        to: Option<ShardId>,
    },
    /// Holdings were adopted.
    Adopted {
        /// What another shard had been found to hold already, and keeps.
        conflicts: u32,
    },
    /// The recovery is over, and this is what came of it.
    Confirmed(Box<Recovered>),
    /// One result for each command of a Batch.
    Batch(Vec<Result<Effect, Refused>>),
}

/// A command was not valid and changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refused {
    /// A shard without a name.
    #[error("shard_id is empty; name the shard")]
    EmptyShardId,
    /// A provider without a name.
    #[error("provider.name is empty; name the provider")]
    EmptyProviderName,
    /// A fleet without a name.
    #[error("fleet_id is empty; name the fleet")]
    EmptyFleetId,
    /// Registered already.
    #[error("shard {0} is registered already")]
    ShardExists(ShardId),
    /// Not registered.
    #[error("shard {0} is not registered; list-shards names those that are")]
    ShardNotFound(ShardId),
    /// First contact wins.
    #[error("cluster {cluster} is bound to {}; use move-cluster from its owner", owned(.owner.as_ref()))]
    ClusterAlreadyBound {
        /// The cluster.
        cluster: ClusterId,
        /// Its owner.
        owner: Option<ShardId>,
    },
    /// Somebody else has it.
    #[error("domain {domain} is assigned to {}; use move-domain from its owner", owned(.owner.as_ref()))]
    DomainAlreadyAssigned {
        /// The domain.
        domain: Domain,
        /// Its owner.
        owner: Option<ShardId>,
    },
    /// Domains of another key, while machines are on loan that go home to domains of this.
    #[error(
        "machines on loan go home to domains of {0}; assign domains of it, or wait until their \
         transfers end (list-transfers)"
    )]
    KeyOnLoan(Label),
    /// A quota below nothing.
    #[error("per_shard[{shard}] is {slice}; a slice is 0 or more")]
    NegativeSlice {
        /// The shard.
        shard: ShardId,
        /// Its slice.
        slice: i32,
    },
    /// Another process has this shard's id and is newer, or as new.
    #[error("stale shard epoch: {shard} is at epoch {known}, by another process")]
    StaleEpoch {
        /// The shard.
        shard: ShardId,
        /// The epoch of the newest process.
        known: i64,
    },
    /// Too many commands at once.
    #[error("a batch of {0} commands; 1000 are the most")]
    BatchTooLarge(u64),
    /// A Batch in a Batch.
    #[error("a batch within a batch; put its commands side by side")]
    NestedBatch,
    /// One state, one fleet.
    #[error("this is fleet {0} already")]
    OtherFleet(String),
    /// The log holds what the replica cannot apply.
    #[error(
        "replica {node_id} knows commands up to {max_kind}, the log holds {in_use}; upgrade it first"
    )]
    ReplicaTooOld {
        /// The replica.
        node_id: String,
        /// What it knows.
        max_kind: u32,
        /// What it would have to know.
        in_use: u32,
    },
    /// From a shard to itself.
    #[error("a transfer from {0} to itself")]
    SameShard(ShardId),
    /// Its machines are nobody else's business.
    #[error("shard {0} has a provider scope of its own; nothing can be transferred")]
    NotShared(ShardId),
    /// Too many machines in one transfer.
    #[error("a transfer of {0} machines; 100 are the most")]
    TooManyMachines(u64),
    /// What shards hold is not known yet.
    #[error("recovering; run confirm-restore when every shard has reported")]
    Recovering,
    /// There was no restore.
    #[error("not recovering: no holdings are adopted")]
    NotRecovering,
    /// Shards that have not said what they hold since the restore. They may report all the
    /// same: without a word of its provider a shard knows nothing for certain.
    #[error(
        "these have not said what they hold since the restore: {}; start those that are down; one \
         that reports waits for its provider, see its log; remove-shard only those that are gone \
         for good",
        listed(.0)
    )]
    HoldingsMissing(Vec<ShardId>),
}

fn owned(owner: Option<&ShardId>) -> String {
    owner.map_or_else(|| "nobody".to_owned(), |owner| format!("shard {owner}"))
}

fn listed(shards: &[ShardId]) -> String {
    shards.iter().map(ShardId::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shard that reports may be among them: whoever removes it makes two owners.
    #[test]
    fn a_shard_without_holdings_is_not_called_gone() {
        let missing = Refused::HoldingsMissing(vec!["a".into(), "b".into()]);
        assert_eq!(
            missing.to_string(),
            "these have not said what they hold since the restore: a, b; start those that are down; \
             one that reports waits for its provider, see its log; remove-shard only those that are \
             gone for good"
        );
    }
}
