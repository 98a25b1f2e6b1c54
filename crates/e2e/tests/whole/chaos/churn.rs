//! Pods that come and go.

use std::collections::BTreeMap;

use bigfleet_crds::keys;
use bigfleet_e2e::{agent::DURATION, cluster::Cluster, workload::Workload};
use bigfleet_scripted::random::Random;
use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    batch::v1::Job,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

/// Of each pod. All are alike, since pods that fit their machines only in one arrangement may
/// wait for ever: nobody here places them.
pub(crate) const PROCESSORS: i64 = 1;

/// A workload of the run, whose needs are told from those of others by their penalty.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    penalty: &'static str,
    pub(crate) bucket: i32,
    most: u64,
    stateful: bool,
}

pub(crate) const WORKLOADS: [Kind; 3] = [
    Kind { name: "web", penalty: "0", bucket: 1, most: 12, stateful: false },
    Kind { name: "api", penalty: "500m", bucket: 2, most: 8, stateful: false },
    Kind { name: "data", penalty: "8192", bucket: 16, most: 6, stateful: true },
];

/// Jobs, which come once and end by themselves.
const JOB: Kind = Kind { name: "job", penalty: "4", bucket: 5, most: 4, stateful: false };

/// In which needs the pods of a workload are.
pub(crate) fn bucket(app: &str) -> Option<i32> {
    let mut kinds = WORKLOADS.iter().chain([&JOB]);
    kinds.find(|kind| kind.name == app).map(|kind| kind.bucket)
}

/// Milliprocessors that a roll-up asks for, by bucket.
pub(crate) fn demand(roll_up: &ClusterCapacityNeeds) -> BTreeMap<i32, i64> {
    let mut demand = BTreeMap::new();
    for need in &roll_up.needs {
        let cpu = need.aggregate_resources.get("cpu").map_or("0", String::as_str);
        let processors: i64 = cpu.parse().expect("whole processors");
        *demand.entry(need.interruption_penalty_bucket).or_default() += processors * 1000;
    }
    demand
}

/// What the run wants at present.
pub(crate) struct Churn {
    client: Client,
    /// Pods of each workload, and whether the server has been told.
    wanted: [(u64, bool); WORKLOADS.len()],
    jobs: usize,
}

impl Churn {
    /// The workloads, without pods yet.
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        for kind in &WORKLOADS {
            let workload = workload(kind.name, kind).replicas(0);
            if kind.stateful {
                cluster.create(&workload.stateful_set()).await;
            } else {
                cluster.create(&workload.deployment()).await;
            }
        }
        Self { client: cluster.client(), wanted: [(0, true); WORKLOADS.len()], jobs: 0 }
    }

    /// Wants something else; a server that is away is told later.
    pub(crate) async fn step(&mut self, draw: &mut Random) {
        if draw.below(6) == 0 {
            self.jobs += 1;
            let name = format!("job-{}", self.jobs);
            let seconds = 2 + draw.below(10);
            let job = workload(&name, &JOB)
                .replicas(1 + draw.below(JOB.most) as u32)
                .annotate(DURATION, &format!("{seconds}s"));
            let mut job = job.job();
            if let Some(labels) = job.spec.as_mut().and_then(|spec| {
                spec.template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut())
            }) {
                labels.insert("app".to_owned(), JOB.name.to_owned());
            }
            // A job that could not be created is not missed.
            let jobs = Api::<Job>::namespaced(self.client.clone(), "default");
            let _ = jobs.create(&PostParams::default(), &job).await;
        } else {
            let index = draw.below(WORKLOADS.len() as u64) as usize;
            self.wanted[index] = (draw.below(WORKLOADS[index].most + 1), false);
        }
        self.tell().await;
    }

    /// Wants nothing any more.
    pub(crate) async fn end(&mut self) {
        self.wanted = [(0, false); WORKLOADS.len()];
        self.tell().await;
        let jobs = Api::<Job>::namespaced(self.client.clone(), "default");
        let background = DeleteParams::background();
        jobs.delete_collection(&background, &ListParams::default()).await.unwrap();
    }

    /// Tells the server what it does not know yet; true when it knows everything.
    pub(crate) async fn tell(&mut self) -> bool {
        for (kind, (replicas, told)) in WORKLOADS.iter().zip(&mut self.wanted) {
            if *told {
                continue;
            }
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            let params = PatchParams::default();
            let client = self.client.clone();
            let answer = if kind.stateful {
                let api = Api::<StatefulSet>::namespaced(client, "default");
                api.patch(kind.name, &params, &patch).await.map(drop)
            } else {
                let api = Api::<Deployment>::namespaced(client, "default");
                api.patch(kind.name, &params, &patch).await.map(drop)
            };
            *told = answer.is_ok();
        }
        self.wanted.iter().all(|(_, told)| *told)
    }

    /// Whether all pods that are wanted run, and no others.
    pub(crate) async fn runs(&mut self, cluster: &Cluster) -> bool {
        if !self.tell().await {
            return false;
        }
        for (kind, (replicas, _)) in WORKLOADS.iter().zip(self.wanted) {
            let pods = cluster.pods("default", kind.name).await.len() as u64;
            let running = cluster.running("default", kind.name).await as u64;
            if (pods, running) != (replicas, replicas) {
                return false;
            }
        }
        true
    }

    /// What a roll-up asks for when nothing is amiss: the needs of jobs aside, which end when they
    /// like.
    pub(crate) fn is_demand(&self, roll_up: &ClusterCapacityNeeds) -> bool {
        let mut said = demand(roll_up);
        said.remove(&JOB.bucket);
        let wanted = WORKLOADS.iter().zip(self.wanted).filter(|(_, (replicas, _))| *replicas > 0);
        let wanted =
            wanted.map(|(kind, (replicas, _))| (kind.bucket, replicas as i64 * PROCESSORS * 1000));
        said == wanted.collect()
    }
}

fn workload(name: &str, kind: &Kind) -> Workload {
    Workload::new("default", name)
        .request("cpu", &PROCESSORS.to_string())
        .annotate(keys::INTERRUPTION_PENALTY, kind.penalty)
}
