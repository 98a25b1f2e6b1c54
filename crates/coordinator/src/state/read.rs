//! What can be asked of the state.

use std::collections::BTreeMap;

use bigfleet_model::digest;

use super::{
    ClusterId, Domain, Key, Label, Provider, QuotaKey, Replica, Row, Shard, ShardId, State,
    Transfer, TransferId,
};

/// How much there is of each, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clusters with an owner.
    pub clusters: usize,
    /// Domains with an owner.
    pub domains: usize,
    /// Rows that somebody has not let go of.
    pub rows_releasing: usize,
    /// Machines in transfers.
    pub transfer_machines: usize,
}

impl State {
    /// The last entry that was applied.
    #[must_use]
    pub const fn applied_index(&self) -> u64 {
        self.applied_index
    }

    /// The highest kind that was applied: whoever joins must know it.
    #[must_use]
    pub const fn kind_in_use(&self) -> u32 {
        self.kind_in_use
    }

    /// The fleet, once it has opened.
    #[must_use]
    pub fn fleet_id(&self) -> Option<&str> {
        self.fleet_id.as_deref()
    }

    /// Whether shards are still asked what they hold.
    #[must_use]
    pub const fn recovering(&self) -> bool {
        self.recovering
    }

    /// Whether this shard has said what it holds since the restore.
    #[must_use]
    pub fn adopted(&self, shard: &str) -> bool {
        self.adopted.shards.contains(shard)
    }

    /// All shards, by name.
    #[must_use]
    pub const fn shards(&self) -> &BTreeMap<ShardId, Shard> {
        &self.shards
    }

    /// One shard.
    #[must_use]
    pub fn shard(&self, shard: &str) -> Option<&Shard> {
        self.shards.get(shard)
    }

    /// A cluster's or domain's row.
    #[must_use]
    pub fn row(&self, key: &Key) -> Option<&Row> {
        self.rows.get(key)
    }

    /// All rows, clusters first.
    pub fn rows(&self) -> impl Iterator<Item = (&Key, &Row)> {
        self.rows.iter()
    }

    /// Domains with their owners, by (shard, key, value), from after `after` on.
    pub fn domains_after<'a>(
        &'a self,
        after: Option<&'a (ShardId, Domain)>,
    ) -> impl Iterator<Item = (&'a ShardId, &'a Domain)> {
        let later = move |shard: &ShardId, domain: &Domain| {
            after.is_none_or(|(last, at)| (shard, domain) > (last, at))
        };
        let owners = self.rows.owners().iter();
        owners
            .skip_while(move |(shard, _)| after.is_some_and(|(last, _)| *shard < last))
            .flat_map(|(shard, keys)| keys.iter().map(move |key| (shard, key)))
            .filter_map(|(shard, key)| Some((shard, key.domain()?)))
            .filter(move |(shard, domain)| later(shard, domain))
    }

    /// Domains that this shard owns, held or not yet.
    pub fn domains_of(&self, shard: &str) -> impl Iterator<Item = &Domain> {
        self.rows.owned_by(shard).filter_map(Key::domain)
    }

    /// Clusters that this shard owns, held or not yet.
    pub fn clusters_of(&self, shard: &str) -> impl Iterator<Item = &ClusterId> {
        self.rows.owned_by(shard).filter_map(Key::cluster)
    }

    /// What a shard that sees its clusters as this map does would report.
    #[must_use]
    pub fn cluster_digest_of(&self, shard: &str) -> u64 {
        digest::of_set(self.clusters_of(shard).map(ClusterId::as_str))
    }

    /// Rows that the shard has not let go of, with the index since which.
    pub fn releasing_from(&self, shard: &str) -> impl Iterator<Item = (&Key, u64)> {
        let mark = |key| Some((key, self.rows.get(key)?.releasing.as_ref()?.since));
        self.rows.releasing_from(shard).filter_map(mark)
    }

    /// All rows that somebody has not let go of, by key.
    pub fn releasing(&self) -> impl Iterator<Item = (&Key, &Row)> {
        self.rows.marked().into_iter().filter_map(|key| Some((key, self.rows.get(key)?)))
    }

    /// The log index since which the oldest of them waits.
    #[must_use]
    pub fn oldest_releasing(&self) -> Option<u64> {
        self.rows.oldest_mark()
    }

    /// The topology key whose domains are owned; all others are bookkeeping.
    #[must_use]
    pub const fn ownership_key(&self) -> Option<&Label> {
        self.ownership_key.as_ref()
    }

    /// All quota rows, by provider and region.
    #[must_use]
    pub const fn quotas(&self) -> &BTreeMap<QuotaKey, BTreeMap<ShardId, i32>> {
        &self.quotas
    }

    /// All providers, by name.
    #[must_use]
    pub const fn providers(&self) -> &BTreeMap<String, Provider> {
        &self.providers
    }

    /// All replicas, by node id.
    #[must_use]
    pub const fn replicas(&self) -> &BTreeMap<String, Replica> {
        &self.replicas
    }

    /// All transfers, by id.
    #[must_use]
    pub const fn transfers(&self) -> &BTreeMap<TransferId, Transfer> {
        &self.transfers
    }

    /// How much there is of each.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            rows_releasing: self.rows.releasing_count(),
            transfer_machines: self.transfers.values().map(|one| one.machine_ids.len()).sum(),
            ..Counts::default()
        };
        for key in self.rows.owners().values().flatten() {
            match key {
                Key::Cluster(_) => counts.clusters += 1,
                Key::Domain(_) => counts.domains += 1,
            }
        }
        counts
    }
}
