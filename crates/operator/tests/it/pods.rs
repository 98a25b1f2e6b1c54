//! What waiting pods are told.

use std::{sync::Arc, time::Duration};

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::{Budget, Paced, Store, events::Recorder, memory::Verb, store::Selection};
use bigfleet_model::gate;
use bigfleet_net::shutdown::Shutdown;
use bigfleet_operator::{
    Metrics,
    pod_status::{CONDITIONS, EVENTS, Needs, PodStatus},
    rollup::Projector,
    status::StatusWriter,
};
use bigfleet_wire::v1alpha1::{
    NeedStatusUpdate, Resources, UnmetReason, shard_message::Payload as Down,
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Condition};
use kube::Api;
use serde_json::json;

use crate::{
    rig::{Rig, request, server},
    shard::Words,
};

/// A pod, on a node or not, and its request.
fn pod(rig: &Rig, name: &str, node: Option<&str>) {
    let uid = format!("uid-of-{name}");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "team-a", "uid": uid},
        "spec": {"containers": [], "nodeName": node},
        "status": {"phase": if node.is_some() { "Running" } else { "Pending" }},
    }))
    .unwrap();
    rig.server.put(&pod);
    let mut owned = request(&format!("cr-{name}"), &json!({}));
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}]);
    owned.metadata.owner_references = serde_json::from_value(owner).unwrap();
    rig.server.put(&owned);
}

fn satisfied(rig: &Rig, pod: &str) -> Option<Condition> {
    let status = rig.get(&format!("cr-{pod}")).status?;
    status.conditions.into_iter().find(|condition| condition.type_ == "Satisfied")
}

impl Rig {
    /// The shard speaks of the only need there is.
    async fn need(&self, met: bool, coming: i32) {
        let sent = self.shard.heard().latest().unwrap().needs[0].clone();
        let need = gate::demand::need(&"c-1".into(), 0, sent).unwrap();
        let short = [("cpu".to_owned(), "3".to_owned())];
        self.shard
            .send(Down::NeedStatus(NeedStatusUpdate {
                profile_fingerprint: need.profile.fingerprint().to_string(),
                satisfied: met,
                unmet_reason: if met { 0 } else { UnmetReason::NoMatchingSupply.into() },
                residual_deficit: (!met).then(|| Resources { resources: short.into() }),
                machines_coming: coming,
                ..Default::default()
            }))
            .await
            .unwrap();
        // Frames are taken in order.
        let before = self.side.lines.lock().unwrap().len();
        self.shard.send(Down::AvailableCapacity(Default::default())).await.unwrap();
        self.until("taken", |rig| rig.side.lines.lock().unwrap().len() > before).await;
    }
}

#[tokio::test]
async fn a_waiting_pod_hears_why_and_what_comes() {
    let rig = Rig::start().await;
    pod(&rig, "waits", None);
    pod(&rig, "runs", Some("node-1"));
    rig.until("stamped", |rig| rig.is_acknowledged("cr-waits")).await;
    rig.until("stamped", |rig| rig.is_acknowledged("cr-runs")).await;
    rig.running.pod_status().round().await;
    assert_eq!(rig.server.count(Verb::List, "pods"), 0, "nothing is looked for while all is well");

    rig.need(false, 0).await;
    rig.running.pod_status().round().await;
    let told = satisfied(&rig, "waits").unwrap();
    assert_eq!((told.status.as_str(), told.reason.as_str()), ("False", "NoMatchingSupply"));
    assert!(told.message.ends_with("still short of cpu 3; no machines are on their way"));
    rig.until("an event", |rig| rig.events("NoMatchingSupply").len() == 1).await;
    let event = rig.events("NoMatchingSupply").remove(0);
    assert_eq!((event.type_.as_deref(), event.message), (Some("Warning"), Some(told.message)));
    assert_eq!(event.involved_object.name.as_deref(), Some("waits"));
    assert_eq!(satisfied(&rig, "runs"), None, "a pod with a node is not told");
    assert!(rig.is_acknowledged("cr-waits"), "the phase stays what it is");
    let kinds: Vec<String> =
        rig.get("cr-waits").status.unwrap().conditions.into_iter().map(|c| c.type_).collect();
    assert_eq!(kinds, ["Acknowledged", "Satisfied"]);

    // Said once.
    let writes = rig.server.writes();
    rig.until("seen", |rig| rig.running.pool().unfinished() == 0).await;
    rig.running.pod_status().round().await;
    assert_eq!(rig.server.writes(), writes);

    rig.need(true, 2).await;
    rig.running.pod_status().round().await;
    let told = satisfied(&rig, "waits").unwrap();
    assert_eq!((told.status.as_str(), told.reason.as_str()), ("True", "CapacityComing"));
    assert_eq!(told.message, "2 machines are on their way");
    rig.until("an event", |rig| rig.events("CapacityComing").len() == 1).await;

    rig.need(true, 0).await;
    rig.running.pod_status().round().await;
    assert_eq!(satisfied(&rig, "waits").unwrap().reason, "Satisfied");

    // Nothing is known of needs without a session; conditions stay.
    rig.shard.end_with(tonic::Status::unavailable("a restart")).await.unwrap();
    rig.until("ended", |rig| rig.side.has("ended")).await;
    let lists = rig.server.count(Verb::List, "pods");
    rig.running.pod_status().round().await;
    assert_eq!(rig.server.count(Verb::List, "pods"), lists);
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_19_many_waiting_pods_stay_under_the_limits_and_delay_no_stamp() {
    const PODS: usize = 600;
    let rig = Rig::start().await;
    for number in 0..PODS {
        pod(&rig, &format!("p-{number}"), None);
    }
    rig.shard.until("demand", |heard| heard.wanted("cpu") == [PODS.to_string()]).await;
    rig.need(false, 0).await;
    let stamped = rig.until("all stamped", |rig| rig.metrics.acknowledged.get() == PODS as u64);
    let round = async {
        for _ in 0..3 {
            rig.running.pod_status().round().await;
        }
    };
    tokio::join!(stamped, round);
    let told = (0..PODS).filter(|n| satisfied(&rig, &format!("p-{n}")).is_some()).count();
    // A write over a version that has passed is refused, and counts.
    assert!(told <= CONDITIONS && told > 0, "{told}");
    rig.until("events", |rig| rig.events("NoMatchingSupply").len() == EVENTS).await;
    assert!(rig.metrics.pod_status_skipped.get() > 0);
    assert!((0..PODS).all(|n| rig.is_acknowledged(&format!("cr-p-{n}"))), "and stay so");
    rig.running.stop().await;
}

/// Every request says that its need is unmet; that need was met while there was no session.
#[tokio::test(start_paused = true)]
async fn what_an_earlier_session_left_unmet_is_mended_within_the_limits() {
    const REQUESTS: usize = CONDITIONS + 50;
    let server = server();
    let denial = json!([{
        "type": "Satisfied", "status": "False", "reason": "NoMatchingSupply", "message": "none",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    for number in 0..REQUESTS {
        let mut one = request(&format!("cr-{number}"), &json!({}));
        one.status.as_mut().unwrap().conditions = serde_json::from_value(denial.clone()).unwrap();
        server.put(&one);
    }
    let paced = Paced::new(server.client(), Budget::new(0, 0));
    let (store, projector) = (Store::new("capacityrequests"), Arc::new(Projector::default()));
    let stop = Shutdown::new();
    let following = tokio::spawn({
        let (store, projector, stop) = (store.clone(), projector.clone(), stop.clone());
        let api = Api::<CapacityRequest>::all(server.client());
        let project = move |object: &CapacityRequest| Some(projector.project(object));
        async move { store.run(api, Selection::all(), project, stop).await }
    });
    store.wait_synced(Duration::from_secs(60)).await.unwrap();
    let writer = StatusWriter::new(paced.clone(), store, projector);
    let (needs, metrics) = (Arc::new(Needs::default()), Arc::new(Metrics::default()));
    let status =
        PodStatus::new(paced, needs.clone(), writer.into(), Recorder::silent(), metrics, true);
    let unmet = || {
        let all = server.all::<CapacityRequest>().into_iter().filter_map(|one| one.status);
        all.filter(|status| status.conditions[0].status == "False").count()
    };
    let pass = |seconds| tokio::time::sleep(Duration::from_secs(seconds));

    pass(600).await;
    status.round().await;
    assert_eq!(unmet(), REQUESTS, "nobody has said that it is met");
    needs.replayed();
    needs.accepted();
    status.round().await;
    assert_eq!(unmet(), REQUESTS, "it may still be told");
    pass(60).await;
    status.round().await;
    assert_eq!(unmet(), REQUESTS - CONDITIONS);
    pass(60).await;
    status.round().await;
    assert_eq!(unmet(), 0);
    let writes = server.writes();
    pass(60).await;
    status.round().await;
    assert_eq!(server.writes(), writes);
    assert_eq!(server.count(Verb::List, "pods"), 0, "nobody waits");
    stop.request();
    following.await.unwrap();
}
