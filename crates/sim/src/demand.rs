//! What the clusters want, as a shard's needs table keeps it (engine chapter
//! §1.6).

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::{NeedKey, Verdict, input::merge};
use bigfleet_model::{ClusterId, Fingerprint, Need, Stamp};

/// The needs of all clusters, and which clusters have reported.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    needs: BTreeMap<NeedKey, Need>,
    ready: BTreeSet<ClusterId>,
    /// Priority and penalties of every profile that a verdict can name. They are
    /// part of the fingerprint.
    stamps: BTreeMap<Fingerprint, Stamp>,
}

impl Demand {
    /// As it stands in some picture; arrivals are kept.
    pub fn new(needs: Vec<Need>, ready: BTreeSet<ClusterId>) -> Self {
        let needs = merge(needs).into_iter().map(|need| (NeedKey::of(&need), need)).collect();
        let mut demand = Self { needs, ready, stamps: BTreeMap::new() };
        demand.index();
        demand
    }

    /// A roll-up: the cluster wants this and nothing else. A need that was there
    /// before keeps its arrival.
    pub fn replace(&mut self, cluster: &ClusterId, needs: Vec<Need>) {
        let mut before = std::mem::take(&mut self.needs);
        self.needs = before.extract_if(.., |key, _| key.cluster != *cluster).collect();
        for mut need in merge(needs) {
            let key = NeedKey::of(&need);
            if let Some(known) = before.get(&key) {
                need.arrival = known.arrival;
            }
            self.needs.insert(key, need);
        }
        self.ready.insert(cluster.clone());
        self.index();
    }

    /// All needs.
    pub fn needs(&self) -> Vec<Need> {
        self.needs.values().cloned().collect()
    }

    /// Clusters that have reported.
    pub const fn ready(&self) -> &BTreeSet<ClusterId> {
        &self.ready
    }

    /// The stamp of a prepared need; none if the verdict is not of this demand.
    pub(crate) fn stamp(&self, verdict: &Verdict) -> Option<Stamp> {
        self.stamps.get(&verdict.fingerprint).map(|stamp| Stamp {
            group: verdict.group.clone(),
            for_cluster: Some(verdict.cluster.clone()),
            ..stamp.clone()
        })
    }

    fn index(&mut self) {
        self.stamps.clear();
        for need in self.needs.values() {
            let own = Stamp::of(need);
            let folded = need.profile.folded().fingerprint().clone();
            self.stamps.insert(folded.clone(), Stamp { fingerprint: folded, ..own.clone() });
            self.stamps.insert(own.fingerprint.clone(), own);
        }
    }
}
