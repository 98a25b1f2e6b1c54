//! One session per cluster.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::rig::{Rig, node, soon, until};
use crate::session::BlobError;

#[tokio::test]
async fn the_newest_wins_and_the_old_one_is_told() {
    let rig = Rig::start().await;
    let mut old = rig.connect("c").await;
    let mut new = rig.connect("c").await;
    old.ends_with(Code::Aborted).await;
    assert_eq!(rig.options.replaced.get(), 1);
    assert_eq!((rig.sessions.count(), rig.sessions.changes()), (1, 2));
    assert!(rig.sessions.put_state(&"c".into(), "node:a".into(), node("node:a", "1")));
    assert_eq!(new.next().await.node().node_name, "1");
}

#[tokio::test]
async fn the_old_one_cleans_up_only_what_is_its_own() {
    let rig = Rig::start().await;
    // However many leave, in whatever order their tasks end, the last one stays.
    let mut all = Vec::new();
    for _ in 0..8 {
        all.push(rig.connect("c").await);
    }
    let mut last = all.pop().unwrap();
    for mut old in all {
        old.ends_with(Code::Aborted).await;
    }
    assert!(rig.sessions.is_connected(&"c".into()));
    assert_eq!(rig.options.removed.get(), 0);
    last.half_close();
    last.ends_with(Code::Ok).await;
    until("removed", || rig.sessions.count() == 0).await;
    assert_eq!((rig.options.installed.get(), rig.options.replaced.get()), (8, 7));
    assert_eq!(rig.options.removed.get(), 1);
}

#[tokio::test]
async fn without_a_session_state_is_dropped() {
    let rig = Rig::start().await;
    assert!(!rig.sessions.put_state(&"c".into(), "node:a".into(), node("node:a", "1")));
    let mut operator = rig.connect("c").await;
    operator.roll_up(1).await;
    assert_eq!(operator.next().await.echo(), "rollup");
}

/// Many threads: whoever comes between a request and the end of its session must
/// not be left waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_wait_ends_however_sessions_come_and_go() {
    let rig = Rig::start().await;
    let over = CancellationToken::new();
    let ask = || {
        let (sessions, over) = (rig.sessions.clone(), over.clone());
        tokio::spawn(async move {
            let (mut asked, cluster) = (0, "c".into());
            while !over.is_cancelled() {
                if let Ok(wait) = sessions.request_blob(&cluster, vec![], &"m".into()) {
                    assert_eq!(wait.await.unwrap_err(), BlobError::NoSession);
                    asked += 1;
                }
                if let Ok(mut sent) =
                    sessions.instruct(&cluster, &"m".into(), Duration::from_secs(1), 0)
                {
                    sent.progress.wait_for(|progress| progress.session_ended).await.unwrap();
                    asked += 1;
                }
                tokio::task::yield_now().await;
            }
            asked
        })
    };
    let askers: Vec<_> = (0..8).map(|_| ask()).collect();
    for _ in 0..50 {
        rig.hello("c").await;
    }
    over.cancel();
    // The last session goes with its operator.
    for asker in askers {
        assert!(soon(asker).await.unwrap() > 0);
    }
    until("removed", || rig.sessions.count() == 0).await;
}
