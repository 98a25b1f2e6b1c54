//! The demand of one cluster.
//!
//! What a cluster asks for is what its live pods request, bound or not: an
//! eviction never lowers it. Pods bind to machines that are CONFIGURED and not
//! cordoned in the picture of the cluster's operator; whoever loses its machine
//! waits and binds again. The cluster knows no session, so it goes on whatever
//! happens to operators and shards.

mod schedule;
mod shape;
mod workload;

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, Fingerprint, Group, Need};
use bigfleet_wire::v1alpha1::{CapacityNeed, ClusterCapacityNeeds};

use self::workload::Workload;
pub use self::{shape::Shape, workload::Pod};
use crate::{operator::Picture, random::Random};

/// How restless a cluster is, in thousandths per step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Churn {
    /// Pods that are replaced by new ones, of each thousand.
    pub replaced: u64,
    /// Workloads, gangs excepted, that are scaled to between half and twice the
    /// size they were deployed with, of each thousand.
    pub scaled: u64,
}

/// One cluster and all its pods.
#[derive(Debug, Clone)]
pub struct Cluster {
    id: ClusterId,
    workloads: Vec<Workload>,
    random: Random,
    churn: Churn,
    timestamp: i64,
    evictions: u64,
    moves: u64,
}

impl Cluster {
    /// Without pods. The seed decides its churn.
    #[must_use]
    pub fn new(id: &str, seed: u64) -> Self {
        Self {
            id: id.into(),
            workloads: Vec::new(),
            random: Random::new(seed),
            churn: Churn::default(),
            timestamp: 0,
            evictions: 0,
            moves: 0,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> &ClusterId {
        &self.id
    }

    /// Adds a workload of so many pods; returns its number. Pods of a shape with
    /// [`Shape::same`] are one gang.
    pub fn deploy(&mut self, shape: &Shape, pods: usize) -> usize {
        let number = self.workloads.len();
        let mut workload = Workload::new(&number.to_string(), shape, pods);
        workload.scale(pods, self.timestamp);
        self.workloads.push(workload);
        number
    }

    /// Wants another number of pods of that workload; a number never given out
    /// has none to change.
    pub fn scale(&mut self, workload: usize, pods: usize) {
        if let Some(workload) = self.workloads.get_mut(workload) {
            workload.size = pods;
            workload.scale(pods, self.timestamp);
        }
    }

    /// How restless it is from the next step on; the default is not at all.
    pub const fn set_churn(&mut self, churn: Churn) {
        self.churn = churn;
    }

    /// Lives one step, at this instant in unix nanoseconds: pods come and go, are
    /// evicted and bind. Returns what the cluster asks for then.
    pub fn step(&mut self, now: i64, picture: &Picture) -> ClusterCapacityNeeds {
        self.timestamp = now.max(self.timestamp + 1);
        self.change();
        let (evicted, moved) = schedule::settle(&mut self.workloads, picture, self.timestamp);
        self.evictions += evicted;
        self.moves += moved;
        self.roll_up()
    }

    fn change(&mut self) {
        for workload in &mut self.workloads {
            if !workload.is_gang() && self.random.per_mille(self.churn.scaled) {
                let (half, size) = (workload.size / 2, workload.size as u64);
                let pods = half + self.random.below(size + size.div_ceil(2) + 1) as usize;
                workload.scale(pods, self.timestamp);
            }
            for pod in &mut workload.pods {
                if self.random.per_mille(self.churn.replaced) {
                    *pod = Pod { machine: None, waiting_since: self.timestamp };
                }
            }
        }
    }

    /// What the cluster asks for, as of the last step: its pods by profile and
    /// gang, in identity order.
    #[must_use]
    pub fn roll_up(&self) -> ClusterCapacityNeeds {
        let mut needs: BTreeMap<(Fingerprint, Group), Need> = BTreeMap::new();
        for workload in self.workloads.iter().filter(|workload| !workload.pods.is_empty()) {
            let need = Need {
                cluster: self.id.clone(),
                profile: workload.profile.clone(),
                group: workload.group.clone(),
                aggregate: workload.request.scale(workload.pods.len() as u64),
                min_unit: workload.request.clone(),
                arrival: self.timestamp,
            };
            let key = (need.profile.fingerprint().clone(), need.group.clone());
            needs.entry(key).and_modify(|known| known.absorb(&need)).or_insert(need);
        }
        ClusterCapacityNeeds {
            cluster_id: self.id.to_string(),
            timestamp_unix_nanos: self.timestamp,
            needs: needs.values().map(CapacityNeed::from).collect(),
        }
    }

    /// Whether every pod is bound to a machine that is CONFIGURED for this
    /// cluster, not cordoned, like its shape asks, with room for all that are
    /// bound there, and gangs share their domain.
    #[must_use]
    pub fn demand_met(&self, picture: &Picture) -> bool {
        let mut room = schedule::all_room(picture);
        let mut checked = self.workloads.clone();
        let lost = schedule::evict(&mut checked, picture, &mut room, self.timestamp);
        lost == 0 && self.waiting() == 0 && self.workloads.iter().all(|one| together(one, picture))
    }

    /// Every pod, by workload.
    pub fn pods(&self) -> impl Iterator<Item = (usize, &Pod)> {
        let workloads = self.workloads.iter().enumerate();
        workloads.flat_map(|(number, workload)| workload.pods.iter().map(move |pod| (number, pod)))
    }

    /// How many pods there are.
    #[must_use]
    pub fn live(&self) -> usize {
        self.pods().count()
    }

    /// How many pods run nowhere.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pods().filter(|(_, pod)| pod.machine.is_none()).count()
    }

    /// Pods that lost their machine so far.
    #[must_use]
    pub const fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Pods that moved so far for others to fit.
    #[must_use]
    pub const fn moves(&self) -> u64 {
        self.moves
    }
}

fn together(workload: &Workload, picture: &Picture) -> bool {
    let machines = workload.pods.iter().filter_map(|pod| pod.machine.as_ref());
    let mut domains = machines
        .filter_map(|id| picture.machines.get(id))
        .map(|machine| workload.domain(&machine.frame.labels));
    let first = domains.next();
    domains.all(|domain| Some(domain) == first)
}
