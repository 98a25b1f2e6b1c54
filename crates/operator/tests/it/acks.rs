//! Pending → Acknowledged.

use bigfleet_in_cluster::memory::{Fault, Server, Verb};
use bigfleet_scripted::shard::Acks;
use serde_json::json;

use crate::{rig::Rig, shard::Words};

fn status_writes(server: &Server) -> Vec<(String, String)> {
    server
        .calls()
        .into_iter()
        .filter(|call| call.verb == Verb::Patch && call.plural == "capacityrequests")
        .map(|call| {
            assert_eq!(call.subresource.as_deref(), Some("status"));
            let phase = call.body["status"]["phase"].as_str().unwrap().to_owned();
            (call.name.unwrap(), phase)
        })
        .collect()
}

#[tokio::test]
async fn operator_inv_06_a_request_is_stamped_once_and_only_after_the_shard_said_so() {
    let rig = Rig::start().await;
    rig.server.record();
    rig.shard.set_acks(Acks::None);
    for number in 0..20 {
        rig.request(&format!("cr-{number}"), &json!({}));
    }
    rig.shard.until("all demand", |heard| heard.wanted("cpu") == ["20"]).await;
    rig.roll_ups(5).await;
    assert!((0..20).all(|number| !rig.is_acknowledged(&format!("cr-{number}"))));
    assert!(status_writes(&rig.server).is_empty());
    rig.shard.set_acks(Acks::Accept);
    rig.until("acknowledged", |rig| {
        (0..20).all(|number| rig.is_acknowledged(&format!("cr-{number}")))
    })
    .await;
    rig.roll_ups(5).await;
    let mut writes = status_writes(&rig.server);
    writes.sort();
    let names: Vec<&str> = writes.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected: Vec<String> = (0..20).map(|number| format!("cr-{number}")).collect();
    expected.sort();
    assert_eq!(names, expected, "one write each");
    assert_eq!(rig.metrics.acknowledged.get(), 20);
    let status = rig.get("cr-7").status.unwrap();
    assert!(status.acknowledged_at.is_some());
    assert_eq!(status.conditions[0].reason, "RollupAccepted");
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_06_refused_and_held_roll_ups_leave_requests_pending() {
    let rig = Rig::start().await;
    rig.shard.set_acks(Acks::Reject);
    rig.request("cr", &json!({}));
    rig.until("refused", |rig| rig.metrics.rollups_rejected.get() > 3).await;
    rig.until("told", |rig| !rig.events("RollupRejected").is_empty()).await;
    assert!(!rig.is_acknowledged("cr"));
    let event = &rig.events("RollupRejected")[0];
    assert!(event.message.as_deref().unwrap().ends_with("needs[0]: no"));
    assert_eq!(event.involved_object.name.as_deref(), Some("bigfleet-operator"));
    rig.shard.set_acks(Acks::Hold);
    rig.roll_ups(5).await;
    assert!(!rig.is_acknowledged("cr"));
    rig.shard.set_acks(Acks::Accept);
    rig.until("acknowledged", |rig| rig.is_acknowledged("cr")).await;
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_18_an_old_answer_does_not_stamp_a_younger_request() {
    let rig = Rig::start().await;
    rig.shard.set_acks(Acks::None);
    rig.request("old", &json!({}));
    rig.shard.until("one", |heard| heard.wanted("cpu") == ["1"]).await;
    let first = rig.shard.heard().latest().unwrap().timestamp_unix_nanos;
    rig.request("young", &json!({}));
    rig.shard.until("both", |heard| heard.wanted("cpu") == ["2"]).await;
    rig.shard.confirm(first).await.unwrap();
    rig.until("acknowledged", |rig| rig.is_acknowledged("old")).await;
    rig.roll_ups(5).await;
    assert!(!rig.is_acknowledged("young"));
    rig.running.stop().await;
}

#[tokio::test]
async fn failed_stamps_are_tried_again_and_what_is_gone_is_done() {
    let rig = Rig::start().await;
    rig.server.inject(Fault::answer(500).on(Verb::Patch, "capacityrequests").times(7));
    rig.server.inject(Fault::answer(404).on(Verb::Patch, "capacityrequests").named("ghost"));
    for name in ["a", "b", "ghost"] {
        rig.request(name, &json!({}));
    }
    rig.until("stamped", |rig| rig.is_acknowledged("a") && rig.is_acknowledged("b")).await;
    assert!(!rig.is_acknowledged("ghost"));
    rig.running.stop().await;
}

#[tokio::test]
async fn stamps_survive_a_reconnect() {
    let rig = Rig::start().await;
    // Accepted, but the API server is away until after the session.
    rig.request("cr", &json!({}));
    rig.server.inject(Fault::unreachable().on(Verb::Patch, "capacityrequests"));
    rig.shard.until("demand", |heard| heard.wanted("cpu") == ["1"]).await;
    rig.shard.set_acks(Acks::None);
    rig.shard.end_with(tonic::Status::unavailable("a restart")).await.unwrap();
    rig.shard.until("a second session", |heard| heard.sessions() == 2).await;
    rig.server.heal();
    rig.shard.set_acks(Acks::Accept);
    rig.until("acknowledged", |rig| rig.is_acknowledged("cr")).await;
    assert!(rig.metrics.session_reconnects.get() >= 1);
    rig.running.stop().await;
}

#[tokio::test]
async fn a_request_that_is_not_understood_is_told_and_hides_nobody() {
    let rig = Rig::start().await;
    rig.request("good", &json!({}));
    let bad = json!({"requirements": [{"key": "k", "operator": "Gt", "values": ["4"]}]});
    rig.request("bad", &bad);
    rig.until("good", |rig| rig.is_acknowledged("good")).await;
    assert_eq!(rig.shard.heard().wanted("cpu"), ["1"]);
    rig.until("told", |rig| !rig.events("Untranslatable").is_empty()).await;
    let status = rig.get("bad").status.unwrap();
    assert_eq!(serde_json::to_value(&status).unwrap()["phase"], "Pending");
    let told = &status.conditions[0];
    assert_eq!((told.type_.as_str(), told.status.as_str()), ("Translatable", "False"));
    assert!(told.message.contains("spec.requirements[0].operator"), "{}", told.message);
    // Mended, it counts, and says so.
    let mut mended = rig.get("bad");
    mended.spec.requirements.clear();
    mended.metadata.generation = Some(2);
    rig.server.put(&mended);
    rig.until("mended", |rig| rig.is_acknowledged("bad")).await;
    rig.until("said", |rig| {
        let status = rig.get("bad").status.unwrap();
        status.conditions.iter().any(|one| one.type_ == "Translatable" && one.status == "True")
    })
    .await;
    assert!(rig.is_acknowledged("bad"), "a later write does not take it back");
    rig.running.stop().await;
}
