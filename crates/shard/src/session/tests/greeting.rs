//! Who is let in, and how a stream ends.

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{Hello, operator_message::Payload};
use tonic::Code;

use super::rig::{Rig, mtls, until};
use crate::session::{Features, SessionOptions};

#[tokio::test]
async fn a_good_hello_is_acked_with_epoch_and_term() {
    let rig = Rig::start().await;
    let mut operator = rig.dial(&Security::Plaintext).await;
    operator.say_hello("c").await;
    let ack = operator.next().await.ack();
    assert_eq!((ack.echo.as_str(), ack.shard_epoch, ack.coordinator_term), ("hello", 7, 3));
    assert_eq!(operator.next().await.echo(), "resync");
    assert!(rig.sessions.is_connected(&"c".into()));
    assert_eq!((rig.sessions.count(), rig.sessions.changes()), (1, 1));
    assert_eq!(*rig.host.changed.lock().unwrap(), ["c".into()]);
    assert_eq!(rig.options.installed.get(), 1);
}

#[tokio::test]
async fn anything_but_a_hello_with_a_name_is_refused() {
    let rig = Rig::start().await;
    let mut operator = rig.dial(&Security::Plaintext).await;
    operator.roll_up(1).await;
    operator.ends_with(Code::InvalidArgument).await;

    for nameless in ["", "team:eu", &"x".repeat(254)] {
        let mut operator = rig.dial(&Security::Plaintext).await;
        operator.say_hello(nameless).await;
        operator.ends_with(Code::InvalidArgument).await;
    }

    let mut operator = rig.dial(&Security::Plaintext).await;
    operator.send(None).await;
    operator.ends_with(Code::InvalidArgument).await;

    let mut operator = rig.dial(&Security::Plaintext).await;
    operator.half_close();
    operator.ends_with(Code::InvalidArgument).await;
    assert_eq!((rig.sessions.count(), rig.options.installed.get(), rig.entered()), (0, 0, 0));
}

#[tokio::test]
async fn silence_is_not_waited_for() {
    let options = SessionOptions { hello_limit: Duration::from_millis(50), ..Default::default() };
    let rig = Rig::start_with(Security::Plaintext, options).await;
    let mut operator = rig.dial(&Security::Plaintext).await;
    operator.ends_with(Code::DeadlineExceeded).await;
    assert_eq!(SessionOptions::default().hello_limit, Duration::from_secs(10));
}

#[tokio::test]
async fn under_mtls_only_the_clusters_own_certificate_opens_its_session() {
    let pki = Pki::new().unwrap();
    let server = pki.material(&["bigfleet://shard/shard-0"]).unwrap();
    let rig = Rig::start_with(mtls(&server), SessionOptions::default()).await;
    let wrong: [&[&str]; 5] = [
        &[],
        &["bigfleet://cluster/other"],
        &["bigfleet://admin"],
        &["bigfleet://shard/c"],
        &["bigfleet://cluster/c", "bigfleet://cluster/d"],
    ];
    for (index, identities) in wrong.into_iter().enumerate() {
        let material = pki.material(identities).unwrap();
        let mut operator = rig.dial(&mtls(&material)).await;
        operator.say_hello("c").await;
        operator.ends_with(Code::PermissionDenied).await;
        assert_eq!(rig.options.identity_rejected.get(), index as u64 + 1, "{identities:?}");
        assert_eq!(rig.sessions.count(), 0);
    }
    let material = pki.material(&["bigfleet://cluster/c"]).unwrap();
    let mut operator = rig.dial(&mtls(&material)).await;
    operator.say_hello("c").await;
    assert_eq!(operator.next().await.echo(), "hello");
    // A second word of another cluster opens nothing either.
    operator.say_hello("d").await;
    operator.ends_with(Code::InvalidArgument).await;
    assert_eq!(rig.options.identity_rejected.get(), 5);
}

#[tokio::test]
async fn a_later_hello_is_acked_and_nothing_else() {
    let rig = Rig::start().await;
    rig.host.replayed.lock().unwrap().push("node:a".into());
    let mut operator = rig.hello("c").await;
    assert_eq!(operator.next().await.node().supersedes_key, "node:a");
    assert_eq!(operator.next().await.echo(), "resync");
    operator.say_hello("c").await;
    operator.roll_up(1).await;
    assert_eq!(operator.next().await.echo(), "hello");
    assert_eq!(operator.next().await.echo(), "rollup", "no second replay");
    assert_eq!(rig.sessions.changes(), 1);
}

#[tokio::test]
async fn a_later_hello_of_another_cluster_ends_the_stream() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    operator.say_hello("d").await;
    operator.ends_with(Code::InvalidArgument).await;
    until("removed", || rig.sessions.count() == 0).await;
}

#[tokio::test]
async fn an_unknown_payload_is_ignored() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    operator.send(None).await;
    operator.roll_up(5).await;
    assert_eq!(operator.next().await.echo(), "rollup");
}

#[tokio::test]
async fn half_close_ends_well() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    operator.half_close();
    operator.ends_with(Code::Ok).await;
    until("removed", || !rig.sessions.is_connected(&"c".into())).await;
    until("told", || *rig.host.changed.lock().unwrap() == ["c".into(), "c".into()]).await;
    assert_eq!((rig.sessions.changes(), rig.options.removed.get()), (2, 1));
}

#[tokio::test]
async fn a_lost_stream_is_cleaned_up() {
    let rig = Rig::start().await;
    drop(rig.connect("c").await);
    until("removed", || rig.sessions.count() == 0).await;
}

#[tokio::test]
async fn a_stop_ends_sessions_with_unavailable() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    let mut silent = rig.dial(&Security::Plaintext).await;
    rig.stop.cancel();
    operator.ends_with(Code::Unavailable).await;
    silent.ends_with(Code::Unavailable).await;
    let mut late = rig.dial(&Security::Plaintext).await;
    late.say_hello("d").await;
    late.ends_with(Code::Unavailable).await;
    until("removed", || rig.sessions.count() == 0).await;
}

#[tokio::test]
async fn a_connection_that_closes_ends_its_sessions_with_unavailable() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    rig.shutdown.request();
    operator.ends_with(Code::Unavailable).await;
}

#[tokio::test]
async fn what_hello_said_can_be_seen() {
    let rig = Rig::start().await;
    let operator = rig.dial(&Security::Plaintext).await;
    let hello = Hello {
        cluster_id: "c".into(),
        protocol_version: "v1alpha1".into(),
        features: vec!["final-reclaim-ack".into(), "x".repeat(1000)],
    };
    operator.send(Payload::Hello(hello)).await;
    let _other = rig.connect("b").await;
    until("both", || rig.sessions.count() == 2).await;
    assert_eq!(rig.sessions.connected(), ["b".into(), "c".into()]);
    let views = rig.sessions.views();
    assert_eq!(views[1].cluster, "c".into());
    assert_eq!(views[1].protocol_version, "v1alpha1");
    assert_eq!(views[1].features, ["final-reclaim-ack".to_owned(), "x".repeat(64)]);
    assert!(views[1].peer.starts_with("127.0.0.1:"), "{}", views[1].peer);
    assert!(views[1].since_unix_nanos > 0);
    let features = Features { final_reclaim_ack: true, need_status: false };
    assert_eq!(rig.sessions.features(&"c".into()), Some(features));
    assert_eq!(rig.sessions.features(&"b".into()), Some(Features::default()));
    assert_eq!(rig.sessions.features(&"a".into()), None);
}
