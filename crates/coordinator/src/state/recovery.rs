//! After a restore (coordinator chapter §10): what the shards hold is the truth, the
//! backup only a hint.

use std::collections::BTreeSet;

use bigfleet_model::FleetId;
use serde::{Deserialize, Serialize};

use super::{
    Adopted, Effect, Holdings, Key, MachineIn, Refused, Row, ShardId, State, Transfer,
    TransferKind, TransferPhase, TransferRequest,
};

/// What a recovery came to, for whoever ended it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// When the backup was made; 0 if it does not say.
    pub backup_unix_ms: u64,
    /// Registered shards.
    pub shards: u32,
    /// Domains with an owner.
    pub domains: u32,
    /// Clusters with an owner.
    pub clusters: u32,
    /// Machines that shards had received from others.
    pub machines: u32,
    /// Every key whose owner is not the backup's, by key.
    pub changed: Vec<ChangedHands>,
}

/// A key that the backup gives to another shard than the one that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedHands {
    /// The cluster or domain.
    pub key: Key,
    /// Its owner in the backup.
    pub from: Option<ShardId>,
    /// Its owner.
    pub to: Option<ShardId>,
}

impl State {
    /// Makes a backup of this time the beginning of a new generation of its fleet:
    /// ownership stands still until every shard has said what it holds.
    pub fn begin_recovery(&mut self, fleet_id: &FleetId, backup_unix_ms: u64) {
        self.fleet_id = Some(fleet_id.to_string());
        self.recovering = true;
        self.adopted = Adopted { backup_unix_ms, ..Adopted::default() };
        self.transfers.clear();
    }

    pub(super) fn adopt(
        &mut self,
        index: u64,
        shard: &ShardId,
        holdings: &Holdings,
    ) -> Result<Effect, Refused> {
        if !self.recovering {
            return Err(Refused::NotRecovering);
        }
        self.known(shard)?;
        self.adopt_ownership_key(index, holdings);
        let clusters = holdings.clusters.iter().cloned().map(Key::Cluster);
        let held: BTreeSet<Key> =
            clusters.chain(holdings.domains.iter().cloned().map(Key::Domain)).collect();
        let mut conflicts = 0;
        for key in &held {
            conflicts += u32::from(!self.adopt_key(index, shard, key));
        }
        let marked: Vec<Key> = self.rows.releasing_from(shard).cloned().collect();
        for key in marked.iter().filter(|key| !held.contains(*key)) {
            self.clear_mark(index, key);
        }
        self.keep_ownership_key(index);
        for machine in &holdings.machines_in {
            conflicts += u32::from(!self.adopt_machine(index, shard, machine));
        }
        self.touch(index, shard);
        self.adopted.shards.insert(shard.clone());
        Ok(Effect::Adopted { conflicts })
    }

    pub(super) fn confirm_restore(&mut self, index: u64) -> Result<Effect, Refused> {
        if !self.recovering {
            return Ok(Effect::Unchanged);
        }
        let missing = self.not_adopted();
        if !missing.is_empty() {
            return Err(Refused::HoldingsMissing(missing));
        }
        let recovered = self.recovered();
        self.recovering = false;
        self.adopted = Adopted::default();
        self.touch_all(index);
        Ok(Effect::Confirmed(Box::new(recovered)))
    }

    fn recovered(&self) -> Recovered {
        let whole = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let counts = self.counts();
        let now = |key: &Key| self.rows.get(key).and_then(|row| row.owner.clone());
        let changed = self.adopted.changed.iter().map(|(key, from)| ChangedHands {
            key: key.clone(),
            from: from.clone(),
            to: now(key),
        });
        Recovered {
            backup_unix_ms: self.adopted.backup_unix_ms,
            shards: whole(self.shards.len()),
            domains: whole(counts.domains),
            clusters: whole(counts.clusters),
            machines: whole(counts.transfer_machines),
            // What went through other hands and is back has not changed.
            changed: changed.filter(|one| one.from != one.to).collect(),
        }
    }

    /// While recovering: the key is about to lose this owner. The first one is the
    /// backup's.
    pub(super) fn remember_owner(&mut self, key: &Key, owner: Option<&ShardId>) {
        if self.recovering && !self.adopted.changed.contains_key(key) {
            self.adopted.changed.insert(key.clone(), owner.cloned());
        }
    }

    /// Shared-scope shards that have not said what they hold.
    #[must_use]
    pub fn not_adopted(&self) -> Vec<ShardId> {
        let waits = |(id, shard): &(&ShardId, &super::Shard)| {
            shard.shared && !self.adopted.shards.contains(*id)
        };
        self.shards.iter().filter(waits).map(|(id, _)| id.clone()).collect()
    }

    /// Domains that shards hold are of the ownership key, by definition; the backup may
    /// be from before it was set. The first shard to say so decides.
    fn adopt_ownership_key(&mut self, index: u64, holdings: &Holdings) {
        let Some(first) = holdings.domains.first() else { return };
        let decided = self.adopted.keys.iter().any(|key| key.domain().is_some());
        if !decided && self.ownership_key.as_ref() != Some(&first.key) {
            self.ownership_key = Some(first.key.clone());
            self.touch_all(index);
        }
    }

    /// Whether the key is now this shard's.
    fn adopt_key(&mut self, index: u64, shard: &ShardId, key: &Key) -> bool {
        let row = self.rows.get(key).cloned().unwrap_or_default();
        if self.adopted.keys.contains(key) && row.owner.as_ref() != Some(shard) {
            return false;
        }
        if row.owner.as_ref() != Some(shard) {
            self.remember_owner(key, row.owner.as_ref());
        }
        let marked = row.releasing.map(|mark| mark.from);
        for other in [row.owner, marked].into_iter().flatten() {
            self.touch(index, &other);
        }
        self.rows.set(key, Row { owner: Some(shard.clone()), releasing: None });
        self.adopted.keys.insert(key.clone());
        true
    }

    /// Whether the machine is now in a transfer to this shard.
    fn adopt_machine(&mut self, index: u64, shard: &ShardId, machine: &MachineIn) -> bool {
        let MachineIn { transfer: id, machine, home, from } = machine;
        if let Some(known) = self.transfers.get(id)
            && known.machine_ids.contains(machine)
        {
            return known.to == *shard;
        }
        if self.any_on_the_way(std::slice::from_ref(machine)) {
            return false;
        }
        let transfer = self.transfers.entry(id.clone()).or_insert_with(|| Transfer {
            kind: TransferKind::Idle,
            from: from.clone(),
            to: shard.clone(),
            request: TransferRequest::default(),
            phase: TransferPhase::Moved,
            home: Some(home.clone()),
            machine_ids: BTreeSet::new(),
        });
        let fits = transfer.to == *shard
            && transfer.phase == TransferPhase::Moved
            && transfer.home.as_ref() == Some(home);
        if fits {
            transfer.machine_ids.insert(machine.clone());
            self.touch_home(index, Some(home.clone()));
        }
        fits
    }
}
