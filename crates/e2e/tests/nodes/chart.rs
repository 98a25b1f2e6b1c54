//! Row 34: an operator as its chart installs, upgrades and leaves it. No container runs here, so
//! the test does a kubelet's part: it mounts the volume of the Deployment and starts the process
//! with the Deployment's arguments.

use std::{fs, path::Path, sync::Arc};

use bigfleet_crds::CapacityRequest;
use bigfleet_e2e::{
    agent::Habits,
    cluster::{Cluster, NAMESPACE},
    fleet::{Fleet, Part},
    wait::PATIENCE,
};
use bigfleet_net::tls::{Security, Tls};
use bigfleet_scripted::shard::Shard;
use bigfleet_testkit::pki::{Leaf, Pki};
use bigfleet_wire::v1alpha1::operator_message::Payload as Up;
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, KeyToPath, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Status;

const CHART: &str = "bigfleet-operator";
const SECRET: &str = "operator-tls";
const MOUNT: &str = "/etc/bigfleet";
const OURS: &[&str] = &["bigfleet://cluster/c-1"];
const HOSTS: &[&str] = &["localhost", "127.0.0.1"];

const REQUEST: &str = "\
apiVersion: bigfleet.lucy.sh/v1alpha1
kind: CapacityRequest
metadata: {name: sample, namespace: default}
spec: {priority: 0, resources: {cpu: '1'}}
";

/// Installs the chart, or upgrades it, with these values.
fn install(cluster: &mut Cluster, values: &Value) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("values.json");
    fs::write(&file, values.to_string()).unwrap();
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts").join(CHART);
    let values = format!("--values={}", file.display());
    // The rig has applied parts of it before.
    let args = ["--take-ownership", values.as_str()];
    let plane = cluster.plane();
    tokio::task::block_in_place(|| plane.install_chart(&chart, CHART, NAMESPACE, &args)).unwrap();
}

async fn deployment(cluster: &Cluster) -> Deployment {
    Api::namespaced(cluster.client(), NAMESPACE).get(CHART).await.unwrap()
}

/// What makes new pods when it changes.
async fn checksum(cluster: &Cluster) -> String {
    let template = deployment(cluster).await.spec.unwrap().template;
    template.metadata.unwrap().annotations.unwrap()["checksum/config"].clone()
}

async fn write_secret(cluster: &Cluster, pki: &Pki, leaf: &Leaf) {
    let data = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET},
        "stringData": {
            "tls.crt": leaf.cert_pem, "tls.key": leaf.key_pem, "ca.crt": pki.ca_pem(),
        },
    });
    let secrets = Api::<Secret>::namespaced(cluster.client(), NAMESPACE);
    let params = PatchParams::apply("e2e").force();
    secrets.patch(SECRET, &params, &Patch::Apply(&data)).await.unwrap();
}

/// Brings a folder to what the Deployment's volume holds.
async fn mount(cluster: &Cluster, folder: &Path) {
    let pod = deployment(cluster).await.spec.unwrap().template.spec.unwrap();
    let mounts = pod.containers[0].volume_mounts.as_ref().unwrap();
    assert_eq!(mounts.len(), 1, "no mount inside another");
    assert_eq!((mounts[0].mount_path.as_str(), &mounts[0].sub_path), (MOUNT, &None));
    let volume = pod.volumes.unwrap().into_iter().find(|volume| volume.name == mounts[0].name);
    for source in volume.unwrap().projected.unwrap().sources.unwrap() {
        if let Some(from) = source.config_map {
            let api = Api::<ConfigMap>::namespaced(cluster.client(), NAMESPACE);
            let data = api.get(&from.name).await.unwrap().data.unwrap();
            place(folder, &from.items.unwrap(), |key| data[key].as_bytes());
        }
        if let Some(from) = source.secret {
            let api = Api::<Secret>::namespaced(cluster.client(), NAMESPACE);
            let data = api.get(&from.name).await.unwrap().data.unwrap();
            let bytes = |key: &str| {
                let ByteString(bytes) = &data[key];
                bytes.as_slice()
            };
            place(folder, &from.items.unwrap(), bytes);
        }
    }
}

fn place<'a>(folder: &Path, items: &[KeyToPath], content: impl Fn(&str) -> &'a [u8]) {
    for item in items {
        let path = folder.join(&item.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content(&item.key)).unwrap();
    }
}

/// Starts what the Deployment's pod would be.
async fn start(cluster: &Cluster, fleet: &Fleet, pod: &str, folder: &Path) -> Part {
    mount(cluster, folder).await;
    let spec = deployment(cluster).await.spec.unwrap().template.spec.unwrap();
    let args = spec.containers[0].args.clone().unwrap();
    // Ports are the rig's on this machine.
    let args = args.iter().filter(|arg| !arg.starts_with("--metrics-addr"));
    let here = folder.display().to_string();
    let args: Vec<String> = args.map(|arg| arg.replace(MOUNT, &here)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut operator = fleet.operator(pod, &cluster.operator_kubeconfig(None), &args).await;
    operator.until_ready().await;
    operator
}

/// The blob that the operator renders for this request.
async fn blob(shard: &Shard, request: &str) -> String {
    shard.bootstrap("c-1", request, 1).await.unwrap();
    let id = format!("{request}0");
    let answer = |frame: &Up| match frame {
        Up::BootstrapResponse(answer) if answer.request_id == id => Some(answer.clone()),
        _ => None,
    };
    let answer = shard.find("a blob", answer, PATIENCE).await.unwrap();
    assert_eq!(answer.error, "");
    String::from_utf8(answer.user_data).unwrap()
}

async fn until_session(shard: &Shard, count: usize) {
    let wanted = |heard: &bigfleet_scripted::shard::Heard| {
        heard.sessions() >= count && heard.live_sessions() == 1
    };
    shard.wait_for("a session", wanted, PATIENCE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_34_a_chart_is_upgraded_changed_and_uninstalled() {
    let Some(mut cluster) = Cluster::start_or_skip(Habits::default()).await else { return };
    let (fleet, pki) = (Fleet::new(), Pki::new().unwrap());
    let server = pki.material(&["bigfleet://shard/shard-0"]).unwrap();
    let tls = Tls::load(&server.cert(), &server.key(), &server.ca()).unwrap();
    let shard = Shard::start(&Security::Mtls(Arc::new(tls))).await.unwrap();
    let leaf = || pki.issue(OURS, HOSTS).unwrap();
    let values = |template: &str| {
        json!({
            "clusterID": "c-1",
            "shardAddress": shard.addr(),
            "bootstrapTemplate": template,
            "tls": {"secretName": SECRET},
        })
    };

    // Plain first, then with a template and TLS: it starts.
    install(&mut cluster, &json!({"clusterID": "c-1", "shardAddress": shard.addr()}));
    write_secret(&cluster, &pki, &leaf()).await;
    install(&mut cluster, &values("first of {{ .ClusterID }}"));
    let folder = TempDir::new().unwrap();
    let mut operator = start(&cluster, &fleet, "operator-0", folder.path()).await;
    until_session(&shard, 1).await;
    assert_eq!(blob(&shard, "one-").await, "first of c-1");

    // A rotated certificate reaches the running process.
    let before = checksum(&cluster).await;
    write_secret(&cluster, &pki, &leaf()).await;
    mount(&cluster, folder.path()).await;
    shard.end_with(Status::unavailable("restarting")).await.unwrap();
    until_session(&shard, 2).await;
    assert!(operator.process().log().contains("reloaded"), "the old leaf is in use");
    assert_eq!(checksum(&cluster).await, before);

    // Another template makes other pods, with that template.
    install(&mut cluster, &values("second of {{ .ClusterID }}"));
    assert_ne!(checksum(&cluster).await, before);
    operator.process().signal("TERM").await;
    assert!(operator.process().ended().await.success());
    let folder = TempDir::new().unwrap();
    let _operator = start(&cluster, &fleet, "operator-1", folder.path()).await;
    until_session(&shard, 3).await;
    assert_eq!(blob(&shard, "two-").await, "second of c-1");

    // What is uninstalled leaves the kinds and their objects.
    cluster.apply(REQUEST);
    let plane = cluster.plane();
    let mut uninstall = plane.helm();
    uninstall.args(["uninstall", CHART, "--namespace", NAMESPACE, "--wait"]);
    let uninstalled = tokio::task::block_in_place(|| uninstall.output()).unwrap();
    assert!(uninstalled.status.success(), "{}", String::from_utf8_lossy(&uninstalled.stderr));
    let deployments = Api::<Deployment>::namespaced(cluster.client(), NAMESPACE);
    assert!(deployments.get_opt(CHART).await.unwrap().is_none());
    let kinds = cluster.all::<CustomResourceDefinition>().await;
    let ours = kinds.iter().filter(|kind| kind.name_any().ends_with("bigfleet.lucy.sh"));
    assert_eq!(ours.filter(|kind| kind.metadata.deletion_timestamp.is_none()).count(), 3);
    assert_eq!(cluster.all::<CapacityRequest>().await.len(), 1);
}
