//! Clusters and domains change hands (coordinator chapter §5, §8): release precedes
//! claim, so that never two shards hold one key, and briefly none does.

use super::{ClusterId, Domain, Effect, Key, Refused, Releasing, Row, ShardId, State};

impl State {
    pub(super) fn bind_cluster(
        &mut self,
        index: u64,
        cluster: &ClusterId,
        shard: &ShardId,
    ) -> Result<Effect, Refused> {
        self.known(shard)?;
        let key = Key::Cluster(cluster.clone());
        match self.owner(&key) {
            Some(owner) if owner == shard => return Ok(Effect::Unchanged),
            Some(owner) => {
                let owner = Some(owner.clone());
                return Err(Refused::ClusterAlreadyBound { cluster: cluster.clone(), owner });
            }
            None => {}
        }
        self.change_owner(index, &key, Some(shard));
        Ok(Effect::Changed)
    }

    pub(super) fn assign_domain(
        &mut self,
        index: u64,
        domain: &Domain,
        shard: &ShardId,
    ) -> Result<Effect, Refused> {
        self.settled_ownership()?;
        self.known(shard)?;
        let key = Key::Domain(domain.clone());
        match self.owner(&key) {
            Some(owner) if owner == shard => return Ok(Effect::Unchanged),
            Some(owner) => {
                let owner = Some(owner.clone());
                return Err(Refused::DomainAlreadyAssigned { domain: domain.clone(), owner });
            }
            None => {}
        }
        self.would_leave_no_loan_behind(domain)?;
        let effect = self.move_to(index, domain, Some(shard));
        if self.ownership_key.is_none() {
            self.ownership_key = Some(domain.key.clone());
            self.touch_all(index);
        }
        Ok(effect)
    }

    pub(super) fn unassign_domain(
        &mut self,
        index: u64,
        domain: &Domain,
    ) -> Result<Effect, Refused> {
        self.settled_ownership()?;
        if self.owner(&Key::Domain(domain.clone())).is_none() {
            return Ok(Effect::Unchanged);
        }
        Ok(self.move_to(index, domain, None))
    }

    pub(super) fn move_domain(
        &mut self,
        index: u64,
        domain: &Domain,
        from: &ShardId,
        to: &ShardId,
    ) -> Result<Effect, Refused> {
        self.settled_ownership()?;
        let owner = self.owner(&Key::Domain(domain.clone()));
        if owner == Some(to) {
            return Ok(Effect::Unchanged);
        }
        if owner != Some(from) {
            let owner = owner.cloned();
            return Err(Refused::DomainAlreadyAssigned { domain: domain.clone(), owner });
        }
        self.known(to)?;
        Ok(self.move_to(index, domain, Some(to)))
    }

    pub(super) fn move_cluster(
        &mut self,
        index: u64,
        cluster: &ClusterId,
        from: &ShardId,
        to: &ShardId,
    ) -> Result<Effect, Refused> {
        self.settled_ownership()?;
        let key = Key::Cluster(cluster.clone());
        let owner = self.owner(&key);
        if owner == Some(to) {
            return Ok(Effect::Unchanged);
        }
        if owner != Some(from) {
            let owner = owner.cloned();
            return Err(Refused::ClusterAlreadyBound { cluster: cluster.clone(), owner });
        }
        self.known(to)?;
        self.change_owner(index, &key, Some(to));
        Ok(Effect::Changed)
    }

    /// The shard let go of keys by the Assignment of `version`. A row whose owner
    /// changed since is left: the word is older than the last grant.
    pub(super) fn released(
        &mut self,
        index: u64,
        shard: &ShardId,
        keys: &[Key],
        version: u64,
    ) -> Result<Effect, Refused> {
        let mut effect = Effect::Unchanged;
        for key in keys {
            let Some(row) = self.rows.get(key) else { continue };
            let releases = |mark: &Releasing| mark.from == *shard && mark.since <= version;
            if row.releasing.as_ref().is_some_and(releases) {
                self.clear_mark(index, key);
                effect = Effect::Changed;
            }
        }
        self.keep_ownership_key(index);
        Ok(effect)
    }

    /// The one function that changes an owner. A hold is never overwritten by a later
    /// move: moved on before the first shard let go, the key waits for that shard.
    pub(super) fn change_owner(&mut self, index: u64, key: &Key, to: Option<&ShardId>) {
        let Row { owner, releasing } = self.rows.get(key).cloned().unwrap_or_default();
        let shared = |shard: &ShardId| self.shards.get(shard).is_some_and(|shard| shard.shared);
        let hold = releasing.map(|mark| mark.from).or_else(|| owner.clone().filter(shared));
        for shard in [owner.as_ref(), hold.as_ref(), to].into_iter().flatten() {
            self.touch(index, shard);
        }
        let mark = hold.filter(|hold| Some(hold) != to);
        let releasing = mark.map(|from| Releasing { from, since: index });
        self.rows.set(key, Row { owner: to.cloned(), releasing });
        self.keep_ownership_key(index);
    }

    /// Takes the mark off a row: its owner gains it.
    pub(super) fn clear_mark(&mut self, index: u64, key: &Key) {
        let Some(row) = self.rows.get(key) else { return };
        let owner = row.owner.clone();
        if let Some(owner) = &owner {
            self.touch(index, owner);
        }
        self.rows.set(key, Row { owner, releasing: None });
    }

    /// The ownership key goes with its last row.
    pub(super) fn keep_ownership_key(&mut self, index: u64) {
        let gone = self.ownership_key.as_ref().is_some_and(|key| !self.rows.has_domain_of(key));
        if gone {
            self.ownership_key = None;
            self.touch_all(index);
        }
    }

    /// A machine on loan whose home is of another key would be in nobody's machines_out:
    /// the holder of a domain of the new key would own it beside the recipient.
    fn would_leave_no_loan_behind(&self, domain: &Domain) -> Result<(), Refused> {
        if self.ownership_key.is_some() {
            return Ok(());
        }
        let homes = self.transfers.values().filter_map(|transfer| transfer.home.as_ref());
        let other = homes.map(|home| &home.key).find(|key| **key != domain.key);
        other.map_or(Ok(()), |key| Err(Refused::KeyOnLoan(key.clone())))
    }

    fn owner(&self, key: &Key) -> Option<&ShardId> {
        self.rows.get(key)?.owner.as_ref()
    }

    fn move_to(&mut self, index: u64, domain: &Domain, to: Option<&ShardId>) -> Effect {
        let key = Key::Domain(domain.clone());
        let from = self.owner(&key).cloned();
        self.change_owner(index, &key, to);
        Effect::DomainMoved { domain: domain.clone(), from, to: to.cloned() }
    }

    /// Nothing changes hands by command while shards still say what they hold.
    fn settled_ownership(&self) -> Result<(), Refused> {
        if self.recovering { Err(Refused::Recovering) } else { Ok(()) }
    }
}
