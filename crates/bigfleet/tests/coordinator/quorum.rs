//! Without a quorum: silent, unready, alive; and well again as soon as there is one.

use tonic::Code;

use crate::{
    fleet::{Fleet, REPLICAS},
    rig::process::{get, until},
};

#[tokio::test]
async fn quorum_lost_is_unready_but_alive_and_heals() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    client.write("before").await.unwrap();
    let leader = fleet.leader().await;
    let others: Vec<usize> = (0..REPLICAS).filter(|one| *one != leader).collect();
    for replica in &others {
        fleet.kill(*replica).await;
    }
    let unready = until("a leader that notices", async || {
        fleet.readyz(leader).await.filter(|(code, _)| *code == 503)
    })
    .await;
    assert_eq!(unready.1, "no raft leader observed");
    for _ in 0..3 {
        let write = client.write("meanwhile").await.unwrap_err();
        assert!(
            matches!(write.code(), Code::Unavailable | Code::FailedPrecondition),
            "{write}: outcome unknown or not leader"
        );
        let read = client.written().await.unwrap_err();
        assert!(matches!(read.code(), Code::Unavailable | Code::FailedPrecondition), "{read}");
    }
    assert_eq!(get(&fleet.places[leader].http, "/healthz").await.unwrap().0, 200);
    assert!(fleet.process(leader).is_running());
    let ctl = fleet.ctl(&["list-shards"]).await;
    assert_eq!(ctl.status.code(), Some(3), "{}", String::from_utf8_lossy(&ctl.stderr));

    fleet.start(others[0]);
    let written = until("a quorum of two", async || client.written().await.ok()).await;
    assert!(written.contains(&"before".to_owned()), "{written:?}");
    client.write("after").await.unwrap();
    fleet.start(others[1]);
    fleet.until_open().await;
}
