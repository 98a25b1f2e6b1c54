//! A cluster for one test.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use bigfleet_in_cluster::{client, refusal};
use bigfleet_testkit::kube::ControlPlane;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{Namespace, Node, Pod},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{
        DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, PropagationPolicy,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep},
};

use crate::{
    agent::{Agent, Habits},
    wait::{PATIENCE, eventually},
};

/// Where the processes under test belong.
pub const NAMESPACE: &str = "bigfleet-system";

/// A real control plane with our CRDs and rights, and an agent for its nodes.
pub struct Cluster {
    // The agent ends before the server that it calls.
    agent: Agent,
    client: Client,
    plane: ControlPlane,
    _turn: Option<SemaphorePermit<'static>>,
}

/// One test's clusters at a time: their processes alone fill a small machine.
static TURN: Semaphore = Semaphore::const_new(1);

impl Cluster {
    /// Starts one for a test, or says why the test is skipped and returns `None`.
    pub async fn start_or_skip(habits: Habits) -> Option<Self> {
        let turn = TURN.acquire().await.unwrap();
        Self::start(habits, Some(turn)).await
    }

    /// Starts another one for the same test, which goes before the first.
    ///
    /// # Panics
    ///
    /// When the binaries of the first one are gone.
    pub async fn start_another(&self, habits: Habits) -> Self {
        Self::start(habits, None).await.expect("a second cluster where there is one")
    }

    async fn start(habits: Habits, turn: Option<SemaphorePermit<'static>>) -> Option<Self> {
        let plane = tokio::task::spawn_blocking(ControlPlane::start_cluster_or_skip).await;
        let plane = plane.unwrap()?;
        let client = client::connect(Some(plane.kubeconfig()), "bigfleet-e2e").await.unwrap();
        create_namespace(&client, NAMESPACE).await;
        for (chart, parts) in CHARTS {
            apply_parts(&plane, chart, parts);
        }
        let agent = Agent::start(client.clone(), habits);
        Some(Self { agent, client, plane, _turn: turn })
    }

    /// The administrator's client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What stands for the kubelets.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The control plane, to stop its server for example.
    pub fn plane(&mut self) -> &mut ControlPlane {
        &mut self.plane
    }

    /// Applies a manifest.
    pub fn apply(&self, manifest: &str) {
        self.plane.apply(manifest).unwrap();
    }

    /// A kubeconfig with the rights that the operator's chart gives; through a proxy's port, if
    /// one is given.
    #[must_use]
    pub fn operator_kubeconfig(&self, port: Option<u16>) -> PathBuf {
        self.account("bigfleet-operator", port)
    }

    /// A kubeconfig with the rights that the pod controller's chart gives.
    #[must_use]
    pub fn pod_controller_kubeconfig(&self, port: Option<u16>) -> PathBuf {
        self.account("bigfleet-unschedulable-pod-controller", port)
    }

    /// Gives the operator the rights that its chart adds for a pool of join tokens.
    pub fn allow_bootstrap_tokens(&self) {
        let (chart, _) = CHARTS[0];
        let parts = [
            "--set=clusterID=c,shardAddress=s:7780",
            "--set=bootstrapTokens.pool=1,bootstrapTokens.apiServer=https://a:6443",
            "--show-only=templates/rbac.yaml",
            // Most of it is there already.
            "--take-ownership",
        ];
        apply_parts(&self.plane, chart, &parts);
    }

    /// A kubeconfig with the rights that the local provider asks for.
    #[must_use]
    pub fn local_provider_kubeconfig(&self) -> PathBuf {
        self.apply(include_str!("../../../providers/local/rbac.yaml"));
        let name = "bigfleet-provider-local";
        self.plane.account_kubeconfig(name, name, None).unwrap()
    }

    fn account(&self, name: &str, port: Option<u16>) -> PathBuf {
        self.plane.account_kubeconfig(NAMESPACE, name, port).unwrap()
    }

    /// Makes a namespace.
    pub async fn namespace(&self, name: &str) {
        create_namespace(&self.client, name).await;
    }

    /// Creates a namespaced object.
    pub async fn create<K>(&self, object: &K) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
        let api = Api::<K>::namespaced(self.client.clone(), &namespace);
        api.create(&PostParams::default(), object).await.unwrap()
    }

    /// Deletes a namespaced object and what belongs to it.
    pub async fn delete<K>(&self, namespace: &str, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        let background = Some(PropagationPolicy::Background);
        let params = DeleteParams { propagation_policy: background, ..DeleteParams::default() };
        api.delete(name, &params).await.unwrap();
    }

    /// Gives a Deployment another number of pods.
    pub async fn scale(&self, namespace: &str, deployment: &str, replicas: u32) {
        let api = Api::<Deployment>::namespaced(self.client.clone(), namespace);
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api.patch(deployment, &PatchParams::default(), &patch).await.unwrap();
    }

    /// All pods of a workload.
    pub async fn pods(&self, namespace: &str, app: &str) -> Vec<Pod> {
        let api = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let of_app = ListParams::default().labels(&format!("app={app}"));
        patiently(|| api.list(&of_app)).await.items
    }

    /// How many pods of a workload run and are not about to end.
    pub async fn running(&self, namespace: &str, app: &str) -> usize {
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
        };
        self.pods(namespace, app).await.iter().filter(runs).count()
    }

    /// All nodes.
    pub async fn nodes(&self) -> Vec<Node> {
        self.all().await
    }

    /// All objects of a kind, of whatever namespace.
    pub async fn all<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api = Api::<K>::all(self.client.clone());
        let everything = ListParams::default();
        patiently(|| api.list(&everything)).await.items
    }

    /// How many objects of a kind there are, without reading them all.
    pub async fn count<K>(&self) -> usize
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api = Api::<K>::all(self.client.clone());
        let one = ListParams::default().limit(1);
        let list = patiently(|| api.list_metadata(&one)).await;
        let rest = list.metadata.remaining_item_count.unwrap_or_default();
        list.items.len() + usize::try_from(rest).unwrap_or_default()
    }

    /// Runs `kubectl` as the administrator; what it printed.
    ///
    /// # Panics
    ///
    /// When it refuses.
    pub fn kubectl(&self, args: &[&str]) -> String {
        let mut command = self.plane.kubectl();
        let output = tokio::task::block_in_place(|| command.args(args).output()).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until that many pods of a workload run.
    pub async fn until_running(&self, namespace: &str, app: &str, count: usize) {
        let what = format!("{count} running pods of {namespace}/{app}");
        eventually(&what, || async { self.running(namespace, app).await == count }).await;
    }
}

/// Reads again where the server was too busy to answer.
async fn patiently<T, F>(mut read: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match read().await {
            Ok(answer) => return answer,
            Err(error) => assert!(
                refusal::is_passing(&error) && Instant::now() < deadline,
                "the server does not say: {error}"
            ),
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// What of each chart a process outside of the cluster needs: no Deployment, whose pods would be
/// demand themselves.
const CHARTS: [(&str, &[&str]); 2] = [
    (
        "bigfleet-operator",
        &[
            "--set=clusterID=c,shardAddress=s:7780",
            "--show-only=templates/serviceaccount.yaml",
            "--show-only=templates/rbac.yaml",
            "--show-only=templates/crds/bigfleet.lucy.sh_capacityrequests.yaml",
            "--show-only=templates/crds/bigfleet.lucy.sh_upcomingnodes.yaml",
            "--show-only=templates/crds/bigfleet.lucy.sh_availablecapacities.yaml",
        ],
    ),
    (
        "bigfleet-unschedulable-pod-controller",
        &["--show-only=templates/serviceaccount.yaml", "--show-only=templates/rbac.yaml"],
    ),
];

fn apply_parts(plane: &ControlPlane, chart: &str, parts: &[&str]) {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts");
    plane.apply_chart(&charts.join(chart), chart, NAMESPACE, parts).unwrap();
}

async fn create_namespace(client: &Client, name: &str) {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let api = Api::<Namespace>::all(client.clone());
    api.create(&PostParams::default(), &namespace).await.unwrap();
}
