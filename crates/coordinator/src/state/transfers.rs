//! Transfers begin, move, settle, end (coordinator chapter §9). The record is all that
//! a new leader needs.

use std::collections::BTreeSet;

use super::{
    Domain, Effect, Key, MAX_TRANSFER_MACHINES, MachineId, Refused, Settled, ShardId, State,
    Transfer, TransferId, TransferKind, TransferPhase, TransferRequest,
};

impl State {
    pub(super) fn begin_transfer(
        &mut self,
        index: u64,
        id: &TransferId,
        kind: TransferKind,
        (from, to): (&ShardId, &ShardId),
        request: &TransferRequest,
    ) -> Result<Effect, Refused> {
        if self.transfers.contains_key(id) {
            return Ok(Effect::Unchanged);
        }
        for shard in [from, to] {
            self.known(shard)?;
            if !self.shards.get(shard).is_some_and(|shard| shard.shared) {
                return Err(Refused::NotShared(shard.clone()));
            }
        }
        if from == to {
            return Err(Refused::SameShard(from.clone()));
        }
        let transfer = Transfer {
            kind,
            from: from.clone(),
            to: to.clone(),
            request: request.clone(),
            phase: TransferPhase::Releasing,
            home: None,
            machine_ids: BTreeSet::new(),
        };
        self.transfers.insert(id.clone(), transfer);
        self.touch(index, from);
        Ok(Effect::Changed)
    }

    pub(super) fn release_transfer(
        &mut self,
        index: u64,
        id: &TransferId,
        home: &Domain,
        machine_ids: &[MachineId],
    ) -> Result<Effect, Refused> {
        if machine_ids.len() > MAX_TRANSFER_MACHINES {
            return Err(Refused::TooManyMachines(machine_ids.len() as u64));
        }
        let Some(transfer) = self.transfers.get(id) else { return Ok(Effect::Unchanged) };
        if transfer.phase != TransferPhase::Releasing {
            return Ok(Effect::Unchanged);
        }
        let (from, to) = (transfer.from.clone(), transfer.to.clone());
        let ours = self.rows.get(&Key::Domain(home.clone())).and_then(|row| row.held_by());
        // A home of another key would be in nobody's machines_out, and the donor would
        // own the machines again beside the recipient.
        let at_home = ours == Some(&from) && self.ownership_key.as_ref() == Some(&home.key);
        // One without machines could never settle.
        let fit = at_home && !machine_ids.is_empty() && !self.any_on_the_way(machine_ids);
        if fit {
            if let Some(transfer) = self.transfers.get_mut(id) {
                transfer.phase = TransferPhase::Moved;
                transfer.home = Some(home.clone());
                transfer.machine_ids = machine_ids.iter().cloned().collect();
            }
            self.touch(index, &to);
        } else {
            self.transfers.remove(id);
        }
        self.touch(index, &from);
        Ok(Effect::Changed)
    }

    pub(super) fn end_transfer(&mut self, index: u64, id: &TransferId) -> Result<Effect, Refused> {
        let phase = self.transfers.get(id).map(|transfer| transfer.phase);
        if phase != Some(TransferPhase::Releasing) {
            return Ok(Effect::Unchanged);
        }
        self.drop_transfer(index, id);
        Ok(Effect::Changed)
    }

    /// Entries of transfers that have ended, or that are to another shard, say nothing.
    pub(super) fn settle(
        &mut self,
        index: u64,
        shard: &ShardId,
        settled: &[Settled],
    ) -> Result<Effect, Refused> {
        let mut effect = Effect::Unchanged;
        for Settled { transfer: id, machine } in settled {
            let Some(transfer) = self.transfers.get_mut(id) else { continue };
            if transfer.to != *shard || !transfer.machine_ids.remove(machine) {
                continue;
            }
            effect = Effect::Changed;
            let (home, last) = (transfer.home.clone(), transfer.machine_ids.is_empty());
            self.touch(index, shard);
            self.touch_home(index, home);
            if last {
                self.transfers.remove(id);
            }
        }
        Ok(effect)
    }

    /// A shard is removed: what was to go to it goes home, what it was asked for is off.
    /// What it gave away stays with the recipient.
    pub(super) fn end_transfers_of(&mut self, index: u64, shard: &ShardId) {
        let ends = |transfer: &Transfer| {
            transfer.to == *shard
                || (transfer.from == *shard && transfer.phase == TransferPhase::Releasing)
        };
        let ended = self.transfers.iter().filter(|(_, transfer)| ends(transfer));
        let ended: Vec<TransferId> = ended.map(|(id, _)| id.clone()).collect();
        for id in ended {
            self.drop_transfer(index, &id);
        }
    }

    /// Whether a machine is in a transfer already.
    pub(super) fn any_on_the_way(&self, machines: &[MachineId]) -> bool {
        self.transfers
            .values()
            .any(|transfer| machines.iter().any(|machine| transfer.machine_ids.contains(machine)))
    }

    fn drop_transfer(&mut self, index: u64, id: &TransferId) {
        let Some(transfer) = self.transfers.remove(id) else { return };
        self.touch(index, &transfer.from);
        self.touch(index, &transfer.to);
        self.touch_home(index, transfer.home);
    }

    /// The machines_out of the home's owner are others, whoever donated them.
    pub(super) fn touch_home(&mut self, index: u64, home: Option<Domain>) {
        let row = home.and_then(|home| self.rows.get(&Key::Domain(home)));
        if let Some(owner) = row.and_then(|row| row.owner.clone()) {
            self.touch(index, &owner);
        }
    }
}
