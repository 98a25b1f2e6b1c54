//! Row 33: who may hold a session, and for how long.

use std::sync::Arc;

use bigfleet_e2e::{
    cluster::Cluster,
    fleet::{Fleet, Part},
    wait::{PATIENCE, eventually},
};
use bigfleet_net::tls::{Security, Tls};
use bigfleet_scripted::shard::{Heard, Shard};
use bigfleet_testkit::pki::{Material, Pki};
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

    let of_another = pki.material(&["bigfleet://cluster/c-2"]).unwrap();

    // The certificate of another cluster: it does not even start.
    let mut refused = spawn(cluster, fleet, &shard, &of_another).await;
    assert_eq!(refused.process().ended().await.code(), Some(1));
    assert!(refused.process().log().contains("must carry bigfleet://cluster/c-1"));

    // A new leaf of the same name is taken at the next handshake.
    let material = pki.material(OURS).unwrap();
    let mut operator = spawn(cluster, fleet, &shard, &material).await;
    operator.until_ready().await;
    until_session(&shard, 1).await;
    material.replace_leaf(&leaf()).unwrap();
    shard.end_with(Status::unavailable("restarting")).await.unwrap();
    until_session(&shard, 2).await;

    // One that has expired, or is another's, gets no session; the next good one does.
    let expired = pki.issue_expired(OURS, hosts).unwrap();
    let anothers = pki.issue(&["bigfleet://cluster/c-2"], hosts).unwrap();
    for (bad, sessions, refusals) in [(expired, 2, 2.0), (anothers, 3, 1.0)] {
        let before = ends(&operator).await;
        material.replace_leaf(&bad).unwrap();
        shard.end_with(Status::unavailable("restarting")).await.unwrap();
        // The first end is that of the session itself.
        eventually("the operator is refused", || async {
            ends(&operator).await > before + refusals
        })
        .await;
        assert_eq!(shard.heard().sessions(), sessions);
        material.replace_leaf(&leaf()).unwrap();
        until_session(&shard, sessions + 1).await;
    }
    assert!(operator.process().is_running(), "nothing of this needed a restart");
}

async fn spawn(cluster: &Cluster, fleet: &Fleet, shard: &Shard, material: &Material) -> Part {
    let args = [
        format!("--shard-addr={}", shard.addr()),
        "--leader-elect=false".to_owned(),
        format!("--tls-cert={}", material.cert().display()),
        format!("--tls-key={}", material.key().display()),
        format!("--tls-ca={}", material.ca().display()),
    ];
    let args = args.each_ref().map(String::as_str);
    fleet.operator("operator-33", &cluster.operator_kubeconfig(None), &args).await
}

/// Sessions that ended, refused ones among them.
async fn ends(operator: &Part) -> f64 {
    let ended = operator.metric("bigfleet_operator_session_reconnects_total").await;
    ended.unwrap_or_default()
}

async fn until_session(shard: &Shard, count: usize) {
    let wanted = |heard: &Heard| heard.sessions() == count && heard.live_sessions() == 1;
    shard.wait_for("a session", wanted, PATIENCE).await.unwrap();
}
