//! A control plane, an account with the rights of §9, and the binary.

use std::{
    cell::Cell,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use bigfleet_crds::CapacityRequest;
use bigfleet_testkit::kube::ControlPlane;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Event, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use super::{NAME, api};

/// A busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the specification grants the pod controller, and where it runs.
const RIGHTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: bigfleet-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: tight}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: upc, namespace: bigfleet-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: upc}
rules:
- {apiGroups: [""], resources: [pods, nodes, persistentvolumes, persistentvolumeclaims], verbs: [get, list, watch]}
- {apiGroups: [scheduling.k8s.io], resources: [podgroups], verbs: [get, list, watch]}
- {apiGroups: [bigfleet.lucy.sh], resources: [capacityrequests], verbs: [get, list, watch, create, patch, delete, deletecollection]}
- {apiGroups: [bigfleet.lucy.sh], resources: [capacityrequests/status], verbs: [patch]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: upc}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: upc}
subjects: [{kind: ServiceAccount, name: upc, namespace: bigfleet-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: upc, namespace: bigfleet-system}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: upc, namespace: bigfleet-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: upc}
subjects: [{kind: ServiceAccount, name: upc, namespace: bigfleet-system}]
"#;

pub(crate) struct Site {
    cluster: ControlPlane,
    client: Client,
    kubeconfig: PathBuf,
    names: Cell<u32>,
}

/// The control plane alone.
pub(crate) struct Empty(ControlPlane);

impl Site {
    pub(crate) fn start_or_skip() -> Option<Empty> {
        ControlPlane::start_or_skip().map(Empty)
    }
}

impl Empty {
    /// Definitions, rights, and an account to run under.
    pub(crate) async fn prepare(self) -> Site {
        let cluster = self.0;
        let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/crd");
        kubectl(&cluster, &["apply", "--server-side", "-f", crds]);
        kubectl(&cluster, &["wait", "--for=condition=Established", "--timeout=60s", "-f", crds]);
        let rights = cluster.kubeconfig().with_file_name("rights.yaml");
        std::fs::write(&rights, RIGHTS).unwrap();
        kubectl(&cluster, &["apply", "-f", &rights.display().to_string()]);
        let token = kubectl(&cluster, &["create", "token", "upc", "-n=bigfleet-system"]);
        let admin = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
        let mut config: Value = serde_json::from_str(&admin).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        let kubeconfig = cluster.kubeconfig().with_file_name("upc.kubeconfig");
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        let client = bigfleet_in_cluster::client::connect(Some(cluster.kubeconfig()), "test");
        let client = client.await.unwrap();
        Site { cluster, client, kubeconfig, names: Cell::default() }
    }
}

fn kubectl(cluster: &ControlPlane, arguments: &[&str]) -> String {
    let output = cluster.kubectl().args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

impl Site {
    pub(crate) fn run(&self) -> Process {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let child = Command::new(env!("CARGO_BIN_EXE_bigfleet-unschedulable-pod-controller"))
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--metrics-addr=127.0.0.1:{port}"))
            .args(["--resync=3s", "--log-level=info,bigfleet_unschedulable_pod_controller=debug"])
            .env("POD_NAME", "upc-0")
            .env("POD_NAMESPACE", "bigfleet-system")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Process { child, port }
    }

    pub(crate) fn pods(&self, namespace: &str) -> Api<Pod> {
        api(&self.client, namespace)
    }

    pub(crate) fn requests(&self, namespace: &str) -> Api<CapacityRequest> {
        api(&self.client, namespace)
    }

    pub(crate) async fn pod(&self, name: &str, spec: Value) {
        self.pod_in("default", name, spec).await;
    }

    pub(crate) async fn pod_in(&self, namespace: &str, name: &str, mut spec: Value) {
        spec["containers"] =
            json!([{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}]);
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).unwrap();
        self.pods(namespace).create(&PostParams::default(), &pod).await.unwrap();
    }

    pub(crate) async fn patch_pod(&self, name: &str, patch: Value) {
        let params = PatchParams::default();
        self.pods("default").patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    /// The only request of a pod, when there is one.
    pub(crate) async fn request(&self, pod: &str) -> CapacityRequest {
        self.eventually(&format!("a request of {pod}"), async || self.request_if_any(pod).await)
            .await
    }

    pub(crate) async fn request_if_any(&self, pod: &str) -> Option<CapacityRequest> {
        let uid = self.pods("default").get(pod).await.unwrap().uid().unwrap();
        let label = format!("bigfleet.lucy.sh/owned-by-pod={uid}");
        let params = ListParams::default().labels(&label);
        let mut all = self.requests("default").list(&params).await.unwrap().items;
        assert!(all.len() <= 1, "{} requests of {pod}", all.len());
        all.pop()
    }

    pub(crate) async fn lease_if_any(&self) -> Option<Lease> {
        api::<Lease>(&self.client, "bigfleet-system").get_opt(NAME).await.unwrap()
    }

    pub(crate) async fn lease(&self) -> Lease {
        self.lease_if_any().await.unwrap()
    }

    pub(crate) async fn event(&self, reason: &str, namespace: &str) -> Option<Event> {
        let events = api::<Event>(&self.client, namespace);
        let all = events.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().find(|event| event.reason.as_deref() == Some(reason))
    }

    /// What the quota's controller would do, which does not run here.
    pub(crate) async fn quota_of_none(&self, namespace: &str) {
        use k8s_openapi::api::core::v1::ResourceQuota;
        let hard = json!({"count/capacityrequests.bigfleet.lucy.sh": "0"});
        let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": hard}});
        let quotas = api::<ResourceQuota>(&self.client, namespace);
        let quota = serde_json::from_value(quota).unwrap();
        quotas.create(&PostParams::default(), &quota).await.unwrap();
        let status = Patch::Merge(json!({"status": {"hard": hard, "used": hard}}));
        quotas.patch_status("none", &PatchParams::default(), &status).await.unwrap();
        // Admission reads quotas from a cache of its own.
        self.eventually("the quota to hold", async || {
            let probe = serde_json::from_value::<CapacityRequest>(json!({
                "metadata": {"name": "probe"}, "spec": {"priority": 0, "resources": {}},
            }));
            let requests = self.requests(namespace);
            let refused = requests.create(&PostParams::default(), &probe.unwrap()).await.is_err();
            let _ = requests.delete("probe", &Default::default()).await;
            refused.then_some(())
        })
        .await;
    }

    /// The definition as it was before the schema had a default.
    pub(crate) async fn drop_the_default(&self) {
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/default";
        let patch = json!([{"op": "remove", "path": path}]).to_string();
        let crd = "crd/capacityrequests.bigfleet.lucy.sh";
        kubectl(&self.cluster, &["patch", crd, "--type=json", "-p", &patch]);
    }

    pub(crate) fn next_name(&self) -> String {
        self.names.set(self.names.get() + 1);
        format!("another-{}", self.names.get())
    }

    pub(crate) async fn eventually<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(Instant::now() < deadline, "still no {what}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

pub(crate) struct Process {
    child: Child,
    port: u16,
}

impl Process {
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Asks for the stop and waits for it.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
