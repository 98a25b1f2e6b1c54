//! Clusters, stamps, and whose machines are whose.

use std::{hash::BuildHasher, sync::Arc};

use bigfleet_model::{ClusterId, Fingerprint, Group, Stamp};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use smallvec::SmallVec;

use super::{profile::Precedence, shelf::Shelves};
use crate::handle::{AccountIx, ClassIx, ClusterIx, Column, KeyIx, PreparedIx, RunIx, StampIx};

#[derive(Clone)]
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
    /// How often a claim on a bound machine of it ended.
    pub(crate) returns: u32,
    /// Machines that are reported as Configured.
    pub(crate) configured: u32,
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
    pub(crate) key: KeyIx,
    pub(crate) for_cluster: Option<ClusterIx>,
    pub(crate) priority: Option<i32>,
    pub(crate) interruption: f64,
    pub(crate) reclamation: f64,
}

/// A need or fold of a cluster by its identity, and what is stamped for it.
#[derive(Clone, Default)]
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
}

/// Texts and their numbers.
#[derive(Clone, Default)]
pub(crate) struct Names {
    pub(crate) clusters: Column<ClusterIx, ClusterRow>,
    cluster_numbers: HashMap<ClusterId, ClusterIx, FixedState>,
    keys: Column<KeyIx, (Fingerprint, Group)>,
    key_numbers: HashTable<KeyIx>,
    pub(crate) stamps: Column<StampIx, StampRow>,
    stamp_numbers: HashTable<StampIx>,
    /// Machines of one need come one after the other.
    last_stamp: Option<(Arc<Stamp>, StampIx)>,
    pub(crate) accounts: Column<AccountIx, AccountRow>,
    account_numbers: HashMap<(ClusterIx, KeyIx), AccountIx, FixedState>,
    /// A cluster came since ranks were given.
    unranked: bool,
    /// Keys of new stamps that name a fold.
    pub(crate) fold_stamps: Vec<KeyIx>,
}

/// A stamp by value; bits of the penalties.
type StampId = (KeyIx, Option<ClusterIx>, Option<i32>, (u64, u64));

impl StampRow {
    fn id(&self) -> StampId {
        let penalties = (self.interruption.to_bits(), self.reclamation.to_bits());
        (self.key, self.for_cluster, self.priority, penalties)
    }
}

fn hash(fingerprint: &Fingerprint, group: &Group) -> u64 {
    hash_one(&(fingerprint, group))
}

fn hash_one(id: &impl std::hash::Hash) -> u64 {
    FixedState::default().hash_one(id)
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
            returns: 0,
            configured: 0,
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
        if let Some((last, number)) = &self.last_stamp
            && Arc::ptr_eq(last, stamp)
        {
            return *number;
        }
        let row = StampRow {
            key: self.key(&stamp.fingerprint, &stamp.group),
            for_cluster: stamp.for_cluster.as_ref().map(|cluster| self.cluster(cluster)),
            priority: stamp.priority,
            interruption: stamp.interruption,
            reclamation: stamp.reclamation,
        };
        let number = self.intern_stamp(row);
        self.last_stamp = Some((stamp.clone(), number));
        number
    }

    /// What is left of a stamp that serves no need any more.
    pub(crate) fn nameless(&mut self, stamp: StampIx) -> StampIx {
        let key = self.key(&Fingerprint::from(""), &Group::none());
        let row = StampRow { key, ..self.stamps[stamp].clone() };
        self.intern_stamp(row)
    }

    fn intern_stamp(&mut self, row: StampRow) -> StampIx {
        let id = row.id();
        let is = |known: &StampIx| self.stamps[*known].id() == id;
        if let Some(known) = self.stamp_numbers.find(hash_one(&id), is) {
            return *known;
        }
        if self.group(row.key).as_str().starts_with(super::gangs::FOLD) {
            self.fold_stamps.push(row.key);
        }
        let number = self.stamps.push(row);
        let stamps = &self.stamps;
        let hash = |known: &StampIx| hash_one(&stamps[*known].id());
        self.stamp_numbers.insert_unique(hash_one(&id), number, hash);
        number
    }

    /// A stamp in words.
    pub(crate) fn stamp_text(&self, stamp: StampIx) -> Stamp {
        let row = &self.stamps[stamp];
        let (fingerprint, group) = self.keys[row.key].clone();
        Stamp {
            priority: row.priority,
            interruption: row.interruption,
            reclamation: row.reclamation,
            fingerprint,
            group,
            for_cluster: row.for_cluster.map(|cluster| self.clusters[cluster].id.clone()),
        }
    }

    pub(crate) fn group(&self, key: KeyIx) -> &Group {
        &self.keys[key].1
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
