//! One of two works, and says so in the Lease.

use std::time::Duration;

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::memory::{Fault, Server, Verb};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use serde_json::json;

use crate::site::{Running, pod, server, within};

fn lease(server: &Server) -> Option<(String, Option<String>)> {
    let name = "bigfleet-unschedulable-pod-controller";
    let lease: Lease = server.get(Some("bigfleet-system"), name)?;
    let synced = lease.annotations().get("bigfleet.lucy.sh/synced").cloned();
    Some((lease.spec?.holder_identity.unwrap_or_default(), synced))
}

fn synced(server: &Server, who: &str) -> bool {
    lease(server) == Some((who.to_owned(), Some(who.to_owned())))
}

#[tokio::test(start_paused = true)]
async fn the_standby_takes_over_and_syncs_anew() {
    let server = server();
    (0..20).for_each(|at| server.put(&pod(&format!("pod-{at}"), &json!({}))));
    // One pod cannot be served for a while: the holder must not say that it has synced.
    server.inject(Fault::answer(500).on(Verb::Create, "capacityrequests").after(10).times(9));
    let one = Running::start(server.client(), "one", true);
    within(Duration::from_secs(30), "one leads", || one.metrics.leader.get() == 1).await;
    let two = Running::start(server.client(), "two", true);
    within(Duration::from_secs(30), "one has synced", || {
        let all = server.number_of::<CapacityRequest>() == 20;
        assert!(all || !synced(&server, "one"), "synced too early");
        all && synced(&server, "one")
    })
    .await;
    assert_eq!((two.metrics.leader.get(), two.metrics.synced.get()), (0, 0));
    one.crash().await;
    server.put(&pod("late", &json!({})));
    within(Duration::from_secs(40), "two has synced", || {
        let all = server.number_of::<CapacityRequest>() == 21;
        assert!(all || !synced(&server, "two"), "synced too early");
        all && synced(&server, "two")
    })
    .await;
    assert_eq!((two.metrics.leader.get(), two.metrics.synced.get()), (1, 1));
    // An orderly stop gives the lease back at once.
    let three = Running::start(server.client(), "three", true);
    two.stop().await;
    assert_ne!(lease(&server).unwrap().0, "two");
    within(Duration::from_secs(5), "three has synced", || synced(&server, "three")).await;
    three.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_comes_back_finds_the_same_holder_at_work() {
    let server = server();
    let one = Running::start(server.client(), "one", true);
    within(Duration::from_secs(30), "one has synced", || synced(&server, "one")).await;
    server.away(true);
    tokio::time::sleep(Duration::from_secs(120)).await;
    server.put(&pod("new", &json!({})));
    server.away(false);
    within(Duration::from_secs(40), "the new pod is counted", || {
        server.number_of::<CapacityRequest>() == 1
    })
    .await;
    assert!(synced(&server, "one"));
    one.stop().await;
}

/// Operators hold their roll-ups without a live Lease whose holder has synced.
#[tokio::test(start_paused = true)]
async fn without_an_election_there_is_a_lease_all_the_same() {
    let server = server();
    server.put(&pod("pod", &json!({})));
    let one = Running::start(server.client(), "one", false);
    within(Duration::from_secs(5), "one has synced", || synced(&server, "one")).await;
    one.crash().await;
    // The next one does not wait for the lease of its predecessor to run out, and says that it
    // has synced once it holds it.
    server.put(&pod("late", &json!({})));
    let two = Running::start(server.client(), "two", false);
    within(Duration::from_secs(5), "two works", || {
        server.number_of::<CapacityRequest>() == 2 && two.metrics.synced.get() == 1
    })
    .await;
    assert!(synced(&server, "one"), "not its lease yet");
    within(Duration::from_secs(30), "two says so", || synced(&server, "two")).await;
    two.stop().await;
    assert_eq!(lease(&server).unwrap().0, "");
}

/// A first roll-up after the return of the CRD must wait for the requests of all pods.
#[tokio::test(start_paused = true)]
async fn a_holder_takes_its_word_back_while_the_crd_is_gone_and_until_it_is_filled() {
    let server = server();
    (0..20).for_each(|at| server.put(&pod(&format!("pod-{at}"), &json!({}))));
    let one = Running::start(server.client(), "one", true);
    within(Duration::from_secs(30), "one has synced", || synced(&server, "one")).await;
    server.withdraw::<CapacityRequest>();
    within(Duration::from_secs(30), "one takes it back", || !synced(&server, "one")).await;
    assert_eq!(one.metrics.synced.get(), 0);
    // Some of them cannot be written for a while.
    server.inject(Fault::answer(500).on(Verb::Create, "capacityrequests").after(10).times(9));
    server.serve_with::<CapacityRequest>(json!({"status": {"phase": "Pending"}}));
    within(Duration::from_secs(60), "one has synced again", || {
        let all = server.number_of::<CapacityRequest>() == 20;
        assert!(all || !synced(&server, "one"), "synced too early");
        all && synced(&server, "one")
    })
    .await;
    one.stop().await;
}
