//! Shards, quotas, providers, replicas, the fleet's id.

use std::collections::BTreeMap;

use super::{Effect, Key, Refused, ShardId, State};

/// A registered shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Where its clusters reach it.
    pub address: String,
    /// Unix nanoseconds.
    pub registered_at: i64,
    /// Of its newest process; 0 is unspecified.
    pub epoch: i64,
    /// Its newest process; 0 is unspecified.
    pub instance: u64,
    /// Whether it shares its provider with other shards.
    pub shared: bool,
    /// Log index from which on its Assignment is what it is.
    pub changed_at: u64,
}

/// A provider account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaKey {
    /// The provider's name.
    pub provider: String,
    /// Its region.
    pub region: String,
}

/// A provider in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Where shards reach it.
    pub address: String,
    /// Its region.
    pub region: String,
}

/// A replica of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Changes when its disk is wiped.
    pub incarnation: u64,
    /// Where its peers dial it.
    pub raft_address: String,
    /// Where clients are sent to.
    pub grpc_address: String,
    /// The highest kind that it can apply.
    pub max_kind: u32,
}

/// Epoch, instance, shared: the process that speaks for a shard.
type Process = (i64, u64, bool);

impl State {
    pub(super) fn add_shard(
        &mut self,
        index: u64,
        id: &ShardId,
        address: &str,
        registered_at: i64,
        (epoch, instance, shared): Process,
    ) -> Result<Effect, Refused> {
        if id.is_empty() {
            return Err(Refused::EmptyShardId);
        }
        if self.shards.contains_key(id) {
            return Err(Refused::ShardExists(id.clone()));
        }
        let address = address.to_owned();
        // A shard that was removed and comes back is to learn that it owns nothing.
        let changed_at = index;
        let shard = Shard { address, registered_at, epoch, instance, shared, changed_at };
        self.shards.insert(id.clone(), shard);
        Ok(Effect::Changed)
    }

    pub(super) fn update_shard(
        &mut self,
        index: u64,
        id: &ShardId,
        address: &str,
        (epoch, instance, shared): Process,
    ) -> Result<Effect, Refused> {
        let Some(known) = self.shards.get_mut(id) else {
            return Err(Refused::ShardNotFound(id.clone()));
        };
        let two = instance != 0 && known.instance != 0 && instance != known.instance;
        if epoch < known.epoch || (epoch == known.epoch && epoch != 0 && two) {
            return Err(Refused::StaleEpoch { shard: id.clone(), known: known.epoch });
        }
        let before = known.clone();
        address.clone_into(&mut known.address);
        known.epoch = epoch;
        known.instance = instance;
        known.shared |= shared;
        if known.shared != before.shared {
            known.changed_at = index;
        }
        Ok(if *known == before { Effect::Unchanged } else { Effect::Changed })
    }

    /// All that names the shard goes; what others have not let go of stays theirs.
    pub(super) fn remove_shard(&mut self, index: u64, id: &ShardId) -> Result<Effect, Refused> {
        self.known(id)?;
        let owned: Vec<Key> = self.rows.owned_by(id).cloned().collect();
        for key in &owned {
            self.remember_owner(key, Some(id));
            self.change_owner(index, key, None);
        }
        let marked: Vec<Key> = self.rows.releasing_from(id).cloned().collect();
        for key in &marked {
            self.clear_mark(index, key);
        }
        self.keep_ownership_key(index);
        // A row stays although it may be empty: without one nothing is limited.
        for row in self.quotas.values_mut() {
            row.remove(id);
        }
        self.end_transfers_of(index, id);
        self.adopted.shards.remove(id);
        for key in &owned {
            self.adopted.keys.remove(key);
        }
        self.shards.remove(id);
        Ok(Effect::Changed)
    }

    pub(super) fn set_quota(
        &mut self,
        index: u64,
        provider: &str,
        region: &str,
        per_shard: &BTreeMap<ShardId, i32>,
    ) -> Result<Effect, Refused> {
        for (shard, slice) in per_shard {
            self.known(shard)?;
            if *slice < 0 {
                return Err(Refused::NegativeSlice { shard: shard.clone(), slice: *slice });
            }
        }
        let key = QuotaKey { provider: provider.to_owned(), region: region.to_owned() };
        let new = (!per_shard.is_empty()).then_some(per_shard);
        if self.quotas.get(&key) == new {
            return Ok(Effect::Unchanged);
        }
        match new {
            Some(row) => drop(self.quotas.insert(key, row.clone())),
            None => drop(self.quotas.remove(&key)),
        }
        // Also of those that it does not name: a row is a limit for all.
        self.touch_all(index);
        Ok(Effect::Changed)
    }

    pub(super) fn upsert_provider(
        &mut self,
        index: u64,
        name: &str,
        address: &str,
        region: &str,
    ) -> Result<Effect, Refused> {
        if name.is_empty() {
            return Err(Refused::EmptyProviderName);
        }
        let provider = Provider { address: address.to_owned(), region: region.to_owned() };
        if self.providers.get(name) == Some(&provider) {
            return Ok(Effect::Unchanged);
        }
        self.providers.insert(name.to_owned(), provider);
        // Its address says whose quotas it limits.
        self.touch_all(index);
        Ok(Effect::Changed)
    }

    pub(super) fn remove_provider(&mut self, index: u64, name: &str) -> Result<Effect, Refused> {
        if self.providers.remove(name).is_none() {
            return Ok(Effect::Unchanged);
        }
        self.touch_all(index);
        Ok(Effect::Changed)
    }

    pub(super) fn init_fleet(&mut self, fleet_id: &str) -> Result<Effect, Refused> {
        if fleet_id.is_empty() {
            return Err(Refused::EmptyFleetId);
        }
        match &self.fleet_id {
            Some(ours) if ours == fleet_id => Ok(Effect::Unchanged),
            Some(ours) => Err(Refused::OtherFleet(ours.clone())),
            None => {
                self.fleet_id = Some(fleet_id.to_owned());
                Ok(Effect::Changed)
            }
        }
    }

    pub(super) fn upsert_replica(
        &mut self,
        node_id: &str,
        incarnation: u64,
        (raft_address, grpc_address): (&str, &str),
        max_kind: u32,
    ) -> Result<Effect, Refused> {
        if max_kind < self.kind_in_use {
            let (node_id, in_use) = (node_id.to_owned(), self.kind_in_use);
            return Err(Refused::ReplicaTooOld { node_id, max_kind, in_use });
        }
        let (raft_address, grpc_address) = (raft_address.to_owned(), grpc_address.to_owned());
        let replica = Replica { incarnation, raft_address, grpc_address, max_kind };
        let old = self.replicas.insert(node_id.to_owned(), replica);
        Ok(if old.as_ref() == self.replicas.get(node_id) {
            Effect::Unchanged
        } else {
            Effect::Changed
        })
    }

    pub(super) fn remove_replica(&mut self, node_id: &str) -> Result<Effect, Refused> {
        let removed = self.replicas.remove(node_id).is_some();
        Ok(if removed { Effect::Changed } else { Effect::Unchanged })
    }
}
