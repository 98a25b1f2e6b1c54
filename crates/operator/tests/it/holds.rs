//! When not to send.

use std::time::Duration;

use bigfleet_crds::{CapacityRequest, capacity_request_crd, keys};
use bigfleet_in_cluster::memory::{Fault, Verb};
use bigfleet_operator::hold::{DemandSource, UPC_LEASE};
use bigfleet_wire::v1alpha1::CapacityNeed;
use k8s_openapi::{
    api::coordination::v1::Lease,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use serde_json::json;

use crate::{
    rig::{Rig, request, server},
    shard::Words,
};

fn lease(holder: &str, synced: &str, seconds_ago: u64) -> Lease {
    let renewed = jiff::Timestamp::now() - Duration::from_secs(seconds_ago);
    serde_json::from_value(json!({
        "metadata": {
            "name": UPC_LEASE, "namespace": "bigfleet-system",
            "annotations": {keys::SYNCED: synced},
        },
        "spec": {"holderIdentity": holder, "renewTime": MicroTime(renewed), "leaseDurationSeconds": 15},
    }))
    .unwrap()
}

fn cpu(need: &CapacityNeed) -> i32 {
    need.aggregate_resources["cpu"].parse().unwrap()
}

#[tokio::test]
async fn operator_inv_04_no_roll_up_before_the_first_list_is_complete() {
    let server = server();
    for number in 0..1_200 {
        server.put(&request(&format!("cr-{number}"), &json!({})));
    }
    // Three pages, each of which fails once and is slow.
    server.inject(Fault::answer(500).on(Verb::List, "capacityrequests").times(2));
    server.inject(Fault::latency(Duration::from_millis(100)).on(Verb::List, "capacityrequests"));
    let rig = Rig::with(server, |_| {}).await;
    assert!(!rig.readiness.is_ready());
    rig.roll_ups(1).await;
    let first = rig.shard.heard().roll_ups().next().map(|one| cpu(&one.needs[0]));
    assert_eq!(first, Some(1200), "the first roll-up is whole");
    rig.until("ready", |rig| rig.readiness.is_ready()).await;
    rig.running.stop().await;
}

/// Demand of ten requests, told whole.
async fn ten_requests() -> Rig {
    let rig = Rig::start().await;
    for number in 0..10 {
        rig.request(&format!("cr-{number}"), &json!({}));
    }
    rig.shard.until("all demand", |heard| heard.wanted("cpu") == ["10"]).await;
    rig
}

fn begin_to_delete_the_crd(rig: &Rig) {
    let mut going = capacity_request_crd();
    going.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::now()));
    rig.server.put(&going);
}

/// As many requests again, larger ones, and a roll-up of them all.
async fn bring_ten_back(rig: &Rig) {
    for number in 0..10 {
        rig.request(&format!("back-{number}"), &json!({"resources": {"cpu": "3"}}));
    }
    rig.shard.until("resumed", |heard| heard.wanted("cpu") == ["30"]).await;
}

#[tokio::test]
async fn operator_inv_04_a_deleted_crd_holds_and_its_return_resumes() {
    let rig = ten_requests().await;
    // Deleting a CRD deletes its objects first.
    begin_to_delete_the_crd(&rig);
    for number in 0..8 {
        rig.server.remove::<CapacityRequest>(Some("team-a"), &format!("cr-{number}"));
    }
    rig.until("held", |rig| !rig.events("RollupHeld").is_empty()).await;
    rig.server.withdraw::<CapacityRequest>();
    rig.until("not ready", |rig| !rig.readiness.is_ready()).await;
    {
        let heard = rig.shard.heard();
        let wanted: Vec<i32> = heard
            .roll_ups()
            .map(|one| one.needs.first().map_or(0, cpu))
            .skip_while(|cpu| *cpu < 10)
            .collect();
        // Nothing below half of what was sent before was sent.
        let halved = wanted.windows(2).find(|pair| pair[1] * 2 < pair[0]);
        assert_eq!(halved, None, "{wanted:?}");
        assert!(wanted.last() > Some(&0), "never nothing after there was demand");
    }
    rig.server.serve_with::<CapacityRequest>(json!({"status": {"phase": "Pending"}}));
    rig.server.put(&capacity_request_crd());
    rig.until("ready", |rig| rig.readiness.is_ready()).await;
    // Its requests come back one by one; none of the parts is told for the whole.
    let told = rig.shard.heard().roll_ups().count();
    bring_ten_back(&rig).await;
    {
        let heard = rig.shard.heard();
        let after = heard.roll_ups().nth(told).and_then(|one| one.needs.first());
        let first = after.map_or(0, cpu);
        assert!(first >= 15, "at least as many requests as were last sent: {first}");
    }
    assert_eq!(rig.events("RollupHeld").len(), 1, "told once");
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_04_a_crd_that_goes_slowly_takes_no_demand_along() {
    let rig = ten_requests().await;
    begin_to_delete_the_crd(&rig);
    // One request in a roll-up's time: no step is a loss of half.
    for number in 0..10 {
        rig.server.remove::<CapacityRequest>(Some("team-a"), &format!("cr-{number}"));
        rig.until("seen", |rig| rig.running.cycle().requests() == 9 - number).await;
        assert!(rig.running.cycle().next().await.is_none(), "a part is not told for the whole");
    }
    assert_eq!(rig.shard.heard().wanted("cpu"), ["10"]);
    assert!(!rig.events("RollupHeld").is_empty());
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_04_a_crd_replaced_between_two_looks_is_a_lost_one() {
    let rig = ten_requests().await;
    // Gone and back so quickly that the watch has seen nothing but its requests go.
    let crd = capacity_request_crd();
    let name = crd.metadata.name.clone().unwrap();
    rig.server.remove::<CustomResourceDefinition>(None, &name);
    rig.server.put(&crd);
    for number in 0..10 {
        rig.server.remove::<CapacityRequest>(Some("team-a"), &format!("cr-{number}"));
    }
    rig.until("held", |rig| !rig.events("RollupHeld").is_empty()).await;
    assert_eq!(rig.shard.heard().wanted("cpu"), ["10"]);
    bring_ten_back(&rig).await;
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_04_a_demand_source_that_is_not_synced_holds() {
    let server = server();
    server.put(&lease("upc-1", "upc-0", 0));
    server.put(&request("cr", &json!({})));
    let rig = Rig::with(server, |options| options.demand_source = DemandSource::Upc).await;
    rig.shard.until("a session", |heard| heard.sessions() == 1).await;
    rig.until("held", |rig| !rig.events("RollupHeld").is_empty()).await;
    assert!(rig.shard.heard().roll_ups().next().is_none());
    let message = rig.events("RollupHeld")[0].message.clone().unwrap();
    assert!(message.contains("demand_source"), "{message}");
    rig.server.put(&lease("upc-1", "upc-1", 0));
    rig.shard.until("resumed", |heard| heard.wanted("cpu") == ["1"]).await;
    // Given back: whoever wrote requests is gone.
    rig.server.put(&lease("", "upc-1", 0));
    rig.until("held again", |rig| {
        let held = rig.events("RollupHeld");
        held.iter().any(|event| event.message.as_deref().unwrap().contains("nobody holds"))
    })
    .await;
    rig.running.stop().await;
}

#[tokio::test]
async fn demand_does_not_dip_over_a_watch_gap_or_an_outage() {
    let rig = ten_requests().await;
    rig.until("stamped", |rig| (0..10).all(|n| rig.is_acknowledged(&format!("cr-{n}")))).await;
    let from = rig.shard.heard().roll_ups().count();
    rig.server.gap();
    rig.roll_ups(5).await;
    rig.server.away(true);
    // The session stays, cached demand keeps rolling up, blobs are made.
    rig.roll_ups(10).await;
    rig.server.away(false);
    rig.request("late", &json!({}));
    rig.shard.until("followed again", |heard| heard.wanted("cpu") == ["11"]).await;
    {
        let heard = rig.shard.heard();
        let since: Vec<i32> = heard.roll_ups().skip(from).map(|one| cpu(&one.needs[0])).collect();
        assert!(since.iter().all(|cpu| [10, 11].contains(cpu)), "{since:?}");
        assert_eq!(heard.sessions(), 1);
    }
    rig.running.stop().await;
}
