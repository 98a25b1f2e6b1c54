//! Row 33: who may hold a session, and for how long.

use std::sync::Arc;

use bigfleet_e2e::{
    cluster::Cluster,
    fleet::{Fleet, Part},
    wait::{PATIENCE, eventually},
};
use bigfleet_net::tls::{Security, Tls};
use bigfleet_scripted::shard::Shard;
use bigfleet_testkit::pki::{Leaf, Material, Pki};
use tonic::Status;

const OURS: &[&str] = &["bigfleet://cluster/c-1"];

pub(crate) async fn row_33_certificates_are_judged_and_heal(cluster: &Cluster, fleet: &Fleet) {
    println!("row 33");
    let pki = Pki::new().unwrap();
    let server = pki.material(&["bigfleet://shard/shard-0"]).unwrap();
    let tls = Tls::load(&server.cert(), &server.key(), &server.ca()).unwrap();
    let shard = Shard::start(&Security::Mtls(Arc::new(tls))).await.unwrap();
    let hosts = &["localhost", "127.0.0.1"];
    let leaf = || pki.issue(OURS, hosts).unwrap();

    // The certificate of another cluster.
    let material = pki.material(&["bigfleet://cluster/c-2"]).unwrap();
    let mut operator = start(cluster, fleet, &shard, &material).await;
    until_refused(&operator, 1.0).await;
    assert_eq!(shard.heard().sessions(), 0);
    rotate(&material, &leaf());
    until_session(&shard, 1).await;

    // A new leaf of the same name is taken at the next handshake.
    rotate(&material, &leaf());
    shard.end_with(Status::unavailable("restarting")).await.unwrap();
    until_session(&shard, 2).await;

    // One that has expired is not, until there is another.
    let refused = refusals(&operator).await;
    rotate(&material, &pki.issue_expired(OURS, hosts).unwrap());
    shard.end_with(Status::unavailable("restarting")).await.unwrap();
    until_refused(&operator, refused + 2.0).await;
    assert_eq!(shard.heard().sessions(), 2);
    rotate(&material, &leaf());
    until_session(&shard, 3).await;
    assert!(operator.process().is_running(), "nothing of this needed a restart");
}

async fn start(cluster: &Cluster, fleet: &Fleet, shard: &Shard, material: &Material) -> Part {
    let addr = format!("--shard-addr={}", shard.addr());
    let mut args = vec![addr, "--leader-elect=false".to_owned()];
    args.extend([
        format!("--tls-cert={}", material.cert().display()),
        format!("--tls-key={}", material.key().display()),
        format!("--tls-ca={}", material.ca().display()),
    ]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let config = cluster.operator_kubeconfig(None);
    let mut operator = fleet.operator("operator-33", &config, &args).await;
    operator.until_ready().await;
    operator
}

fn rotate(material: &Material, leaf: &Leaf) {
    material.replace_leaf(leaf).unwrap();
}

async fn refusals(operator: &Part) -> f64 {
    let ended = operator.metric("bigfleet_operator_session_reconnects_total").await;
    ended.unwrap_or_default()
}

async fn until_refused(operator: &Part, count: f64) {
    eventually("the operator is refused", || async { refusals(operator).await >= count }).await;
}

async fn until_session(shard: &Shard, count: usize) {
    let wanted = |heard: &bigfleet_scripted::shard::Heard| {
        heard.sessions() == count && heard.live_sessions() == 1
    };
    shard.wait_for("a session", wanted, PATIENCE).await.unwrap();
}
