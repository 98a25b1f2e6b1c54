//! Clusters, stamps, and whose machines are whose.

use std::sync::Arc;

use bigfleet_model::{ClusterId, Fingerprint, Group, Stamp};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::handle::{
    AccountIx, ClassIx, ClusterIx, Column, KeyIx, MachineIx, PreparedIx, RunIx, StampIx,
};

pub(crate) struct ClusterRow {
    pub(crate) id: ClusterId,
    /// It has reported a roll-up to this process, even an empty one.
    pub(crate) ready: bool,
    /// Bound machines, by class.
    pub(crate) shelves: Vec<Shelf>,
    /// Runs of bound machines of which some are unclaimed.
    pub(crate) open: Vec<RunIx>,
    /// Needs as sent.
    pub(crate) needs: Vec<PreparedIx>,
    /// Place of the name among all; kept by [`super::World`].
    pub(crate) rank: u32,
}

/// Bound machines of one cluster and class.
pub(crate) struct Shelf {
    pub(crate) class: ClassIx,
    pub(crate) runs: SmallVec<[RunIx; 2]>,
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
    pub(crate) cluster: Option<ClusterIx>,
    pub(crate) key: Option<KeyIx>,
    /// The need as sent.
    pub(crate) need: Option<PreparedIx>,
    /// The fold, while it stands.
    pub(crate) fold: Option<PreparedIx>,
    /// Bound and bought machines with its stamp.
    pub(crate) runs: SmallVec<[RunIx; 2]>,
    /// Machines that drain for it.
    pub(crate) drains: Vec<MachineIx>,
}

/// Texts and their numbers.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) clusters: Column<ClusterIx, ClusterRow>,
    cluster_numbers: HashMap<ClusterId, ClusterIx, FixedState>,
    keys: Column<KeyIx, (Fingerprint, Group)>,
    key_numbers: HashMap<(Fingerprint, Group), KeyIx, FixedState>,
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

impl Names {
    pub(crate) fn cluster(&mut self, id: &ClusterId) -> ClusterIx {
        if let Some(known) = self.cluster_numbers.get(id) {
            return *known;
        }
        let number = self.clusters.push(ClusterRow {
            id: id.clone(),
            ready: false,
            shelves: Vec::new(),
            open: Vec::new(),
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
        let text = (fingerprint.clone(), group.clone());
        if let Some(known) = self.key_numbers.get(&text) {
            return *known;
        }
        let number = self.keys.push(text.clone());
        self.key_numbers.insert(text, number);
        number
    }

    pub(crate) fn key_text(&self, key: KeyIx) -> &(Fingerprint, Group) {
        &self.keys[key]
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
        let row = AccountRow { cluster: Some(cluster), key: Some(key), ..AccountRow::default() };
        let number = self.accounts.push(row);
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
        let key = self.key_numbers.get(&(fingerprint.clone(), group.clone()))?;
        self.account_numbers.get(&(cluster, *key)).copied()
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
