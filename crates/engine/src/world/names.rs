//! Clusters, stamps, and whose machines are whose.

use std::{hash::BuildHasher, sync::Arc};

use bigfleet_model::{ClusterId, Fingerprint, Group, Stamp};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use smallvec::SmallVec;

use super::{profile::Precedence, shelf::Shelves};
use crate::handle::{
    AccountIx, ClassIx, ClusterIx, Column, KeyIx, MachineIx, PreparedIx, RunIx, StampIx,
};

pub(crate) struct ClusterRow {
    pub(crate) id: ClusterId,
    /// It has reported a roll-up to this process, even an empty one.
    pub(crate) ready: bool,
    /// Bound machines, by class.
    pub(crate) shelves: Shelves,
    /// Runs of bound machines of which some are unclaimed.
    pub(crate) open: Vec<RunIx>,
    /// How many needs, and groups of gangs, of a tier hold their own machines and
    /// have not been decided in this pass.
    resting: SmallVec<[(Precedence, u32); 2]>,
    /// Needs as sent.
    pub(crate) needs: Vec<PreparedIx>,
    /// Place of the name among all; kept by [`super::World`].
    pub(crate) rank: u32,
}

impl ClusterRow {
    pub(crate) fn begin_rest(&mut self, tier: Precedence) {
        match self.resting.iter_mut().find(|(known, _)| *known == tier) {
            Some((_, count)) => *count += 1,
            None => self.resting.push((tier, 1)),
        }
    }

    pub(crate) fn end_rest(&mut self, tier: Precedence) {
        if let Some((_, count)) = self.resting.iter_mut().find(|(known, _)| *known == tier) {
            *count -= 1;
        }
    }

    /// Nobody rests any more.
    pub(crate) fn forget_rest(&mut self) {
        self.resting.clear();
    }

    /// Whether somebody below a tier could be robbed.
    pub(crate) fn rests_below(&self, tier: Precedence) -> bool {
        self.resting.iter().any(|(known, count)| *known < tier && *count > 0)
    }
}

/// A stamp in numbers.
#[derive(Clone)]
pub(crate) struct StampRow {
    pub(crate) stamp: Arc<Stamp>,
    pub(crate) key: KeyIx,
    pub(crate) for_cluster: Option<ClusterIx>,
}

/// A need or fold of a cluster by its identity, and what is stamped for it.
#[derive(Default)]
pub(crate) struct AccountRow {
    /// The need as sent.
    pub(crate) need: Option<PreparedIx>,
    /// The fold, while it stands.
    pub(crate) fold: Option<PreparedIx>,
    /// Bound and bought machines with its stamp.
    pub(crate) runs: SmallVec<[RunIx; 2]>,
    /// How many those are, and how many of them are claimed, by whomever.
    pub(crate) machines: u32,
    pub(crate) claimed: u32,
    /// What each of them has, if all have the same: any class of them.
    pub(crate) uniform: Option<ClassIx>,
    /// A run came since stamps were last compared with the need's.
    pub(crate) unchecked: bool,
    /// Machines that drain for it.
    pub(crate) drains: Vec<MachineIx>,
}

/// Texts and their numbers.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) clusters: Column<ClusterIx, ClusterRow>,
    cluster_numbers: HashMap<ClusterId, ClusterIx, FixedState>,
    keys: Column<KeyIx, (Fingerprint, Group)>,
    key_numbers: HashTable<KeyIx>,
    pub(crate) stamps: Column<StampIx, StampRow>,
    stamp_numbers: HashMap<StampKey, StampIx, FixedState>,
    stamp_addresses: HashMap<usize, StampIx, FixedState>,
    pub(crate) accounts: Column<AccountIx, AccountRow>,
    account_numbers: HashMap<(ClusterIx, KeyIx), AccountIx, FixedState>,
    /// A cluster came since ranks were given.
    unranked: bool,
}

/// A stamp by value; bits of the penalties.
type StampKey = (KeyIx, Option<ClusterIx>, Option<i32>, u64, u64);

fn hash(fingerprint: &Fingerprint, group: &Group) -> u64 {
    FixedState::default().hash_one((fingerprint, group))
}

impl Names {
    pub(crate) fn cluster(&mut self, id: &ClusterId) -> ClusterIx {
        if let Some(known) = self.cluster_numbers.get(id) {
            return *known;
        }
        let number = self.clusters.push(ClusterRow {
            id: id.clone(),
            ready: false,
            shelves: Shelves::default(),
            open: Vec::new(),
            resting: SmallVec::new(),
            needs: Vec::new(),
            rank: 0,
        });
        self.cluster_numbers.insert(id.clone(), number);
        self.unranked = true;
        number
    }

    pub(crate) fn known_cluster(&self, id: &str) -> Option<ClusterIx> {
        self.cluster_numbers.get(id).copied()
    }

    pub(crate) fn key(&mut self, fingerprint: &Fingerprint, group: &Group) -> KeyIx {
        if let Some(known) = self.known_key(fingerprint, group) {
            return known;
        }
        let number = self.keys.push((fingerprint.clone(), group.clone()));
        let keys = &self.keys;
        let hash = |known: &KeyIx| hash(&keys[*known].0, &keys[*known].1);
        self.key_numbers.insert_unique(hash(&number), number, hash);
        number
    }

    fn known_key(&self, fingerprint: &Fingerprint, group: &Group) -> Option<KeyIx> {
        let is = |known: &KeyIx| {
            let (known_fingerprint, known_group) = &self.keys[*known];
            known_group == group && known_fingerprint == fingerprint
        };
        self.key_numbers.find(hash(fingerprint, group), is).copied()
    }

    pub(crate) fn stamp(&mut self, stamp: &Arc<Stamp>) -> StampIx {
        if let Some(known) = self.stamp_addresses.get(&(Arc::as_ptr(stamp) as usize)) {
            return *known;
        }
        let key = self.key(&stamp.fingerprint, &stamp.group);
        let for_cluster = stamp.for_cluster.as_ref().map(|cluster| self.cluster(cluster));
        let value = (
            key,
            for_cluster,
            stamp.priority,
            stamp.interruption.to_bits(),
            stamp.reclamation.to_bits(),
        );
        if let Some(known) = self.stamp_numbers.get(&value) {
            return *known;
        }
        let number = self.stamps.push(StampRow { stamp: stamp.clone(), key, for_cluster });
        self.stamp_numbers.insert(value, number);
        // The row keeps what is behind the address alive.
        self.stamp_addresses.insert(Arc::as_ptr(stamp) as usize, number);
        number
    }

    pub(crate) fn account(&mut self, cluster: ClusterIx, key: KeyIx) -> AccountIx {
        if let Some(known) = self.account_numbers.get(&(cluster, key)) {
            return *known;
        }
        let number = self.accounts.push(AccountRow::default());
        self.account_numbers.insert((cluster, key), number);
        number
    }

    pub(crate) fn known_account(
        &self,
        cluster: &str,
        fingerprint: &Fingerprint,
        group: &Group,
    ) -> Option<AccountIx> {
        let cluster = self.known_cluster(cluster)?;
        let key = self.known_key(fingerprint, group)?;
        self.account_numbers.get(&(cluster, key)).copied()
    }

    /// Places of the clusters by name.
    pub(crate) fn rank(&mut self) {
        if std::mem::take(&mut self.unranked) {
            let mut order: Vec<ClusterIx> = self.clusters.handles().collect();
            order.sort_unstable_by(|a, b| self.clusters[*a].id.cmp(&self.clusters[*b].id));
            for (rank, cluster) in order.into_iter().enumerate() {
                self.clusters[cluster].rank = rank as u32;
            }
        }
    }
}
