//! Identities: what is refused is exit code 4.

use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::AssignDomainResponse;

use crate::rig::{Ctl, Shard, leading, mtls};

const ASSIGN: &[&str] = &["assign-domain", "--key", "k", "--value", "v", "--shard", "s-1", "--yes"];

#[tokio::test]
async fn readonly_sees_and_changes_nothing() {
    let pki = Pki::new().unwrap();
    let replica = mtls(&pki.material(&["bigfleet://coordinator/node-1"]).unwrap());
    let shard = mtls(&pki.material(&["bigfleet://shard/s-1"]).unwrap());
    let shard = Shard::start("s-1", shard).await;
    let coordinator = leading(&replica, &[("s-1", &shard.addr)]).await;
    coordinator.reply(AssignDomainResponse {});
    let [admin, readonly, other] = ["admin", "readonly", "cluster/c"]
        .map(|identity| pki.material(&[&format!("bigfleet://{identity}")]).unwrap());

    let ctl = Ctl::to(&[coordinator.addr()]).with(&admin);
    ctl.run(ASSIGN).await.ok();
    ctl.run(&["pause", "--all", "--reason", "drill", "--yes"]).await.ok();

    let ctl = Ctl::to(&[coordinator.addr()]).with(&readonly);
    ctl.run(&["list-shards"]).await.ok();
    ctl.run(&["needs", "--shard", "s-1"]).await.ok();
    let screen = ctl.run(&["status"]).await.ok();
    assert!(screen.contains("PAUSED (drill)") && !screen.contains("UNAUTHENTICATED"), "{screen}");
    let error = ctl.run(ASSIGN).await.failed(4);
    assert!(
        error.contains("permission denied") && error.contains("bigfleet://readonly"),
        "{error}"
    );
    let saved = ctl.path("x.tar");
    ctl.run(&["snapshot", "save", saved.to_str().unwrap()]).await.failed(4);
    assert!(!saved.exists());
    ctl.run(&["resume", "--all", "--reason", "drill", "--yes"]).await.failed(4);

    let ctl = Ctl::to(&[coordinator.addr()]).with(&other);
    for command in [&["list-shards"][..], &["raft-status"], &["status"], ASSIGN] {
        ctl.run(command).await.failed(4);
    }
    let direct = ["needs", "--shard-addr", &shard.addr];
    ctl.run(&direct).await.failed(4);
    shard.stop().await;
}

#[tokio::test]
async fn servers_must_be_who_they_should_be() {
    let pki = Pki::new().unwrap();
    let impostor = mtls(&pki.material(&["bigfleet://shard/s-2"]).unwrap());
    let coordinator = leading(&impostor, &[]).await;
    let admin = pki.material(&["bigfleet://admin"]).unwrap();
    let error = Ctl::to(&[coordinator.addr()]).with(&admin).run(&["list-shards"]).await.failed(3);
    assert!(error.contains("bigfleet://shard/s-2"), "{error}");

    let shard = Shard::start("s-2", impostor).await;
    let replica = mtls(&pki.material(&["bigfleet://coordinator/node-1"]).unwrap());
    let coordinator = leading(&replica, &[("s-1", &shard.addr)]).await;
    let ctl = Ctl::to(&[coordinator.addr()]).with(&admin);
    let error = ctl.run(&["needs", "--shard", "s-1"]).await.failed(1);
    assert!(error.contains("bigfleet://shard/s-2"), "{error}");
    ctl.run(&["needs", "--shard-addr", &shard.addr]).await.ok();
    shard.stop().await;
}

#[tokio::test]
async fn a_foreign_ca_reaches_nobody() {
    let (pki, foreign) = (Pki::new().unwrap(), Pki::new().unwrap());
    let replica = mtls(&pki.material(&["bigfleet://admin"]).unwrap());
    let coordinator = leading(&replica, &[]).await;
    let admin = foreign.material(&["bigfleet://admin"]).unwrap();
    Ctl::to(&[coordinator.addr()]).with(&admin).run(&["list-shards"]).await.failed(3);
}
