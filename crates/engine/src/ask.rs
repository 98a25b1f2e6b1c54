//! What a shard asks while it acts on a decision: what a need's machines must be
//! like, and whom a machine was for.

use std::sync::Arc;

use bigfleet_model::{ClusterId, Fingerprint, Profile};

use crate::{engine::Engine, input::NeedKey};

impl Engine {
    /// The profile of this text, of a need or of a fold, if any was ever taken in.
    pub fn profile(&self, fingerprint: &Fingerprint) -> Option<&Arc<Profile>> {
        let number = self.world.profile_number(fingerprint)?;
        Some(&self.world.profiles[number].profile)
    }

    /// Whether the last cycle saw a need or a fold of this identity.
    pub fn knows(&self, need: &NeedKey) -> bool {
        let names = &self.world.names;
        let account = names.known_account(&need.cluster, &need.fingerprint, &need.group);
        account.is_some_and(|account| {
            let account = &names.accounts[account];
            let sent = account.need.is_some_and(|need| !self.world.needs[need].removed);
            sent || account.fold.is_some()
        })
    }

    /// Whether a cluster sent a need under this identity.
    pub fn knows_as_sent(&self, need: &NeedKey) -> bool {
        let names = &self.world.names;
        let account = names.known_account(&need.cluster, &need.fingerprint, &need.group);
        let sent = account.and_then(|account| names.accounts[account].need);
        sent.is_some_and(|need| !self.world.needs[need].removed)
    }

    /// How many needs a cluster sent.
    pub fn need_count(&self, cluster: &ClusterId) -> usize {
        let known = self.world.names.known_cluster(cluster);
        known.map_or(0, |cluster| self.world.names.clusters[cluster].needs.len())
    }

    /// Every need as sent of a cluster.
    pub fn needs_of(&self, cluster: &ClusterId) -> Vec<NeedKey> {
        let Some(number) = self.world.names.known_cluster(cluster) else { return Vec::new() };
        let needs = self.world.names.clusters[number].needs.iter();
        needs.map(|need| self.key_of(*need)).collect()
    }

    /// Needs as sent of a cluster whose machines must be like this profile: those
    /// that have it, and those that fold to it.
    pub fn needs_like(&self, cluster: &ClusterId, fingerprint: &Fingerprint) -> Vec<NeedKey> {
        let world = &self.world;
        let Some(number) = world.names.known_cluster(cluster) else { return Vec::new() };
        let like = world.profile_number(fingerprint);
        let needs = world.names.clusters[number].needs.iter();
        let alike = needs.filter(|need| {
            let profile = world.needs[**need].profile;
            like.is_some_and(|like| like == profile || world.profiles[profile].folded == Some(like))
        });
        alike.map(|need| self.key_of(*need)).collect()
    }
}
