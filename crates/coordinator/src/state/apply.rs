//! From a log entry to its rule.

use super::{Command, Effect, MAX_BATCH, Refused, ShardId, State};

impl State {
    /// Applies the entry at `index`. A refused command changes no table, and is applied
    /// nevertheless: the index and the highest kind rise, for it stays in the log, and
    /// a replica that does not know the kind cannot pass it.
    pub fn apply(&mut self, index: u64, command: &Command) -> Result<Effect, Refused> {
        self.skip(index);
        let outcome = match command {
            Command::Batch { commands } => self.batch(index, commands),
            one => self.one(index, one),
        };
        self.kind_in_use = self.kind_in_use.max(command.kind());
        outcome
    }

    /// Passes an entry that holds no command: a new leader's blank, a membership.
    pub fn skip(&mut self, index: u64) {
        self.applied_index = self.applied_index.max(index);
    }

    fn batch(&mut self, index: u64, commands: &[Command]) -> Result<Effect, Refused> {
        if commands.len() > MAX_BATCH {
            return Err(Refused::BatchTooLarge(commands.len() as u64));
        }
        if commands.iter().any(|command| matches!(command, Command::Batch { .. })) {
            return Err(Refused::NestedBatch);
        }
        Ok(Effect::Batch(commands.iter().map(|command| self.one(index, command)).collect()))
    }

    /// One rule of the table. Also what loading a payload goes through.
    pub(super) fn one(&mut self, index: u64, command: &Command) -> Result<Effect, Refused> {
        let outcome = match command {
            Command::AddShard { id, address, registered_at, epoch, instance, shared } => {
                let (epoch, instance, shared) = (*epoch, *instance, *shared);
                self.add_shard(index, id, address, *registered_at, (epoch, instance, shared))
            }
            Command::RemoveShard { id } => self.remove_shard(index, id),
            Command::BindCluster { cluster, shard } => self.bind_cluster(index, cluster, shard),
            Command::AssignDomain { domain, shard } => self.assign_domain(index, domain, shard),
            Command::UnassignDomain { domain } => self.unassign_domain(index, domain),
            Command::SetQuota { provider, region, per_shard } => {
                self.set_quota(index, provider, region, per_shard)
            }
            Command::UpsertProvider { name, address, region } => {
                self.upsert_provider(index, name, address, region)
            }
            Command::UpdateShard { id, address, epoch, instance, shared } => {
                self.update_shard(index, id, address, (*epoch, *instance, *shared))
            }
            Command::Batch { .. } => Err(Refused::NestedBatch),
            Command::InitFleet { fleet_id } => self.init_fleet(fleet_id),
            Command::UpsertReplica {
                node_id,
                incarnation,
                raft_address,
                grpc_address,
                max_kind,
            } => {
                self.upsert_replica(node_id, *incarnation, (raft_address, grpc_address), *max_kind)
            }
            Command::RemoveReplica { node_id } => self.remove_replica(node_id),
            Command::BeginTransfer { id, kind, from, to, request } => {
                self.begin_transfer(index, id, *kind, (from, to), request)
            }
            Command::ReleaseTransfer { id, home, machine_ids } => {
                self.release_transfer(index, id, home, machine_ids)
            }
            Command::EndTransfer { id } => self.end_transfer(index, id),
            Command::RemoveProvider { name } => self.remove_provider(index, name),
            Command::Settle { shard, settled } => self.settle(index, shard, settled),
            Command::MoveDomain { domain, from, to } => self.move_domain(index, domain, from, to),
            Command::Released { shard, keys, version } => {
                self.released(index, shard, keys, *version)
            }
            Command::ConfirmRestore {} => self.confirm_restore(index),
            Command::AdoptHoldings { shard, holdings } => self.adopt(index, shard, holdings),
            Command::MoveCluster { cluster, from, to } => {
                self.move_cluster(index, cluster, from, to)
            }
        };
        self.kind_in_use = self.kind_in_use.max(command.kind());
        outcome
    }

    /// This shard's Assignment is another from `index` on. Due by index, not by content:
    /// else a shard that never heard of a key could not say that it let go of it.
    pub(super) fn touch(&mut self, index: u64, shard: &str) {
        if let Some(shard) = self.shards.get_mut(shard) {
            shard.changed_at = index;
        }
    }

    /// Every shard's Assignment is another.
    pub(super) fn touch_all(&mut self, index: u64) {
        for shard in self.shards.values_mut() {
            shard.changed_at = index;
        }
    }

    /// Whether the shard is there.
    pub(super) fn known(&self, shard: &ShardId) -> Result<(), Refused> {
        if self.shards.contains_key(shard) {
            return Ok(());
        }
        Err(Refused::ShardNotFound(shard.clone()))
    }
}
