//! Bootstrap blobs.

use std::time::Duration;

use bigfleet_wire::v1alpha1::{self as wire, operator_message::Payload};

use super::rig::{Operator, Rig, soon, until};
use crate::session::{BlobError, NoSession};

async fn answer(operator: &Operator, response: wire::BootstrapBlobResponse) {
    operator.send(Payload::BootstrapResponse(response)).await;
}

#[tokio::test]
async fn a_blob_is_asked_for_and_handed_over() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    let requirement = wire::NodeSelectorRequirement { key: "k".into(), ..Default::default() };
    let wait = rig.sessions.request_blob(&"c".into(), vec![requirement.clone()], &"m".into());
    let request = operator.next().await.blob_request();
    assert_eq!((request.cluster_id.as_str(), request.machine_id.as_str()), ("c", "m"));
    assert_eq!(request.requirements, [requirement]);
    let id = request.request_id;
    assert!(id.len() == 16 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    // Unknown and empty ids are dropped.
    for wrong in ["", "0000000000000000"] {
        let data = b"wrong".to_vec();
        let response = wire::BootstrapBlobResponse {
            request_id: wrong.into(),
            user_data: data,
            ..Default::default()
        };
        answer(&operator, response).await;
    }
    let response = wire::BootstrapBlobResponse {
        request_id: id,
        user_data: b"join".to_vec(),
        ttl_seconds: 9,
        error: String::new(),
    };
    answer(&operator, response).await;
    let blob = soon(wait.unwrap()).await.unwrap();
    assert_eq!(blob.data.expose(), b"join");
    assert_eq!(blob.ttl, Some(Duration::from_secs(9)));
    assert!(!format!("{blob:?}").contains("join"));
}

#[tokio::test]
async fn a_refusal_carries_the_operators_words() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    let wait = rig.sessions.request_blob(&"c".into(), vec![], &"m".into()).unwrap();
    let response = wire::BootstrapBlobResponse {
        request_id: operator.next().await.blob_request().request_id,
        user_data: b"join".to_vec(),
        error: "no such template".into(),
        ttl_seconds: -1,
    };
    answer(&operator, response).await;
    assert_eq!(
        soon(wait).await.unwrap_err(),
        BlobError::Refused("no such template".into()),
        "an error wins over data"
    );
}

#[tokio::test]
async fn waits_end_with_the_session_or_its_replacement() {
    let rig = Rig::start().await;
    let cluster = "c".into();
    assert!(matches!(rig.sessions.request_blob(&cluster, vec![], &"m".into()), Err(NoSession)));

    let mut operator = rig.connect("c").await;
    let wait = rig.sessions.request_blob(&cluster, vec![], &"m".into()).unwrap();
    operator.half_close();
    assert_eq!(soon(wait).await.unwrap_err(), BlobError::NoSession);

    let _old = rig.connect("c").await;
    let wait = rig.sessions.request_blob(&cluster, vec![], &"m".into()).unwrap();
    let _new = rig.connect("c").await;
    assert_eq!(soon(wait).await.unwrap_err(), BlobError::NoSession);
}

#[tokio::test]
async fn only_the_session_that_was_asked_may_answer() {
    let rig = Rig::start().await;
    let (mut asked, other) = (rig.connect("c").await, rig.connect("d").await);
    let wait = rig.sessions.request_blob(&"c".into(), vec![], &"m".into()).unwrap();
    let request_id = asked.next().await.blob_request().request_id;
    let mut forged = wire::BootstrapBlobResponse { request_id, ..Default::default() };
    forged.user_data = b"forged".to_vec();
    answer(&other, forged.clone()).await;
    // Read after the forged one.
    let mut other = other;
    other.say_hello("d").await;
    assert_eq!(other.next().await.echo(), "hello");
    forged.user_data = b"join".to_vec();
    answer(&asked, forged).await;
    assert_eq!(soon(wait).await.unwrap().data.expose(), b"join");
}

#[tokio::test]
async fn a_request_nobody_waits_for_is_taken_back() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    // The runtime has one thread and nothing is awaited: it cannot be written yet.
    drop(rig.sessions.request_blob(&"c".into(), vec![], &"m".into()).unwrap());
    assert_eq!(rig.sessions.outbox_depth(), 0);
    operator.roll_up(1).await;
    assert_eq!(operator.next().await.echo(), "rollup");
}

#[tokio::test]
async fn a_full_outbox_refuses_at_once_and_recovers() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    let ask = || rig.sessions.request_blob(&"c".into(), vec![], &"m".into());
    let waits: Vec<_> = (0..1024).map(|_| ask().unwrap()).collect();
    assert!(matches!(ask(), Err(NoSession)));
    assert_eq!(rig.sessions.outbox_depth(), 1024);
    for _ in 0..1024 {
        operator.next().await.blob_request();
    }
    assert!(rig.sessions.is_connected(&"c".into()));
    drop(waits);
    until("empty", || rig.sessions.outbox_depth() == 0).await;
    ask().unwrap();
}
