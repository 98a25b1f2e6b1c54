//! One cloud, call by call.

use bigfleet_provider_kit::{Cloud, CloudError, Ready};
use bigfleet_provider_sim::{Freeze, Kill, Multiplex, Selector, SetStock};
use tokio::time::{Duration, Instant};

use crate::fleets::{failed, machine, op, sim};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn every_kind_takes_its_time() {
    let sim = sim("    latency: {create: 30s, configure: 20s, drain: 10s, delete: 5s}\n");
    let machine = machine(&sim, "a-od-000").await;
    let begun = Instant::now();
    let host = sim.create(&op("op-1"), &machine).await.unwrap();
    assert_eq!((host.reference.as_str(), begun.elapsed()), ("sim://a-od-000/1", SECOND * 30));
    // The same operation once more is the same host, at once.
    assert_eq!(sim.create(&op("op-1"), &machine).await.unwrap(), host);
    assert_eq!(begun.elapsed(), SECOND * 30);
    let configure = op("op-2");
    sim.bootstrap(&configure, &machine, "c", b"join").await.unwrap();
    assert_eq!(sim.ready(&configure, &machine, "c").await.unwrap(), Ready::Yes);
    assert_eq!(begun.elapsed(), SECOND * 50);
    sim.drain(&op("op-3"), &machine, SECOND * 60).await.unwrap();
    assert_eq!(begun.elapsed(), SECOND * 60);
    // By force, once the grace is over.
    sim.drain(&op("op-4"), &machine, SECOND * 3).await.unwrap();
    assert_eq!(begun.elapsed(), SECOND * 63);
    sim.destroy(&op("op-5"), &machine).await.unwrap();
    assert_eq!(begun.elapsed(), SECOND * 68);
    let gone = sim.destroy(&op("op-6"), &machine).await.unwrap_err();
    assert!(matches!(gone, CloudError::Gone(_)), "{gone}");
    let next = sim.create(&op("op-7"), &machine).await.unwrap();
    assert_eq!(next.reference, "sim://a-od-000/2", "another host has another name");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_create_leaves_nothing() {
    let sim = sim("    latency: {create: 30s}
    quotas: {types: {m8: 1}}
    stock: [{type: m8, zone: z1, count: 1}]
");
    let (first, third) = (machine(&sim, "a-od-000").await, machine(&sim, "a-od-002").await);
    let cancelled = op("op-1");
    cancelled.cancelled.cancel();
    assert!(sim.create(&cancelled, &first).await.is_err());
    // Dropped while it waits.
    let waits = tokio::time::timeout(SECOND, async { sim.create(&op("op-2"), &first).await });
    assert!(waits.await.is_err());
    assert_eq!(sim.describe().await.unwrap().iter().filter(|o| o.host.is_some()).count(), 2);
    sim.create(&op("op-3"), &third).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn quotas_bound_hosts_by_type_and_by_capacity() {
    let sim = sim("    quotas: {types: {m8: 3}, capacities: {SPOT: 1}}\n");
    let create = async |id: &str| {
        let machine = machine(&sim, id).await;
        sim.create(&op(&format!("op-{id}")), &machine).await
    };
    create("a-spot-000").await.unwrap();
    let refused = create("a-spot-001").await.unwrap_err();
    assert_eq!(refused.to_string(), "quota: at most 1 hosts of SPOT");
    create("a-od-000").await.unwrap();
    create("a-od-001").await.unwrap();
    let refused = create("a-od-002").await.unwrap_err();
    assert!(matches!(&refused, CloudError::Quota(text) if text.contains("m8")), "{refused}");
    sim.destroy(&op("op-d"), &machine(&sim, "a-od-000").await).await.unwrap();
    create("a-od-002").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stock_runs_out_and_comes_back() {
    let sim = sim("    stock: [{type: m8, zone: z1, count: 1, refill_per_hour: 2}]\n");
    let create = async |id: &str| {
        let machine = machine(&sim, id).await;
        sim.create(&op(&format!("op-{id}")), &machine).await
    };
    create("a-od-000").await.unwrap();
    let short = create("a-od-002").await.unwrap_err();
    assert_eq!(short.to_string(), "out of stock: no m8 left in z1");
    create("a-od-001").await.unwrap();
    tokio::time::advance(SECOND * 1801).await;
    create("a-od-002").await.unwrap();
    let empty = SetStock { count: 0, refill_per_hour: Some(0.0) };
    assert_eq!(sim.controls().stock(&Selector::tier("od"), empty).unwrap(), 2);
    tokio::time::advance(SECOND * 36_000).await;
    assert!(matches!(create("a-od-003").await, Err(CloudError::OutOfStock(_))));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_says_to_try_again() {
    let sim = sim("    mishaps: {api_rate: {per_second: 1, burst: 2}}\n");
    let machine = machine(&sim, "a-od-000").await;
    sim.create(&op("op-1"), &machine).await.unwrap();
    let refused = sim.drain(&op("op-2"), &machine, SECOND).await.unwrap_err();
    assert!(matches!(refused, CloudError::Retry(_)), "{refused}");
    assert!(matches!(sim.describe().await, Err(CloudError::Retry(_))));
    tokio::time::advance(SECOND).await;
    sim.drain(&op("op-2"), &machine, SECOND).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rates_of_one_are_certain() {
    let sim = sim("    mishaps: {create_error_rate: 1, readiness_fail_rate: 1}\n");
    let slot = machine(&sim, "a-od-000").await;
    assert!(matches!(sim.create(&op("op-1"), &slot).await, Err(CloudError::Fatal(_))));
    let metal = machine(&sim, "a-metal-000").await;
    let configure = op("op-2");
    sim.bootstrap(&configure, &metal, "c", b"").await.unwrap();
    assert_eq!(sim.ready(&configure, &metal, "c").await.unwrap(), Ready::NotYet);
}

#[tokio::test(start_paused = true)]
async fn prices_of_spot_walk_and_others_stand() {
    let sim = sim("    price_walk: {interval: 5m, sigma: 0.05}\n");
    let prices = async || -> Vec<(String, f64)> {
        let offers = sim.describe().await.unwrap().into_iter();
        offers.map(|offer| (offer.id, offer.price_per_hour)).collect()
    };
    let before = prices().await;
    assert_eq!(before, prices().await, "no step, no change");
    tokio::time::advance(SECOND * 3000).await;
    for ((id, old), (_, new)) in before.iter().zip(prices().await) {
        assert_eq!(*old != new, id.starts_with("a-spot"), "{id}: {old} -> {new}");
        assert!(new == *old || (0.01..1.0).contains(&new));
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_machine_waits_for_the_thaw() {
    let sim = sim("");
    let (machine, controls) = (machine(&sim, "a-od-000").await, sim.controls());
    let whom = Selector::machines(&["a-od-000"]);
    let length = Some(SECOND * 90);
    controls.freeze(&whom, Freeze { length, ..Freeze::default() }).unwrap();
    let begun = Instant::now();
    sim.create(&op("op-1"), &machine).await.unwrap();
    assert_eq!(begun.elapsed(), SECOND * 90);

    controls.freeze(&whom, Freeze::default()).unwrap();
    let thaw = async {
        tokio::time::sleep(SECOND * 7).await;
        controls.freeze(&whom, Freeze { frozen: false, ..Freeze::default() }).unwrap()
    };
    let operation = op("op-2");
    let (drained, thawed) = tokio::join!(sim.drain(&operation, &machine, SECOND), thaw);
    assert_eq!((drained, thawed), (Ok(()), 1));
    assert_eq!(begun.elapsed(), SECOND * 97);

    let refuse = serde_json::from_str(r#"{"answer": "refuse"}"#).unwrap();
    controls.freeze(&whom, refuse).unwrap();
    assert!(matches!(sim.destroy(&op("op-3"), &machine).await, Err(CloudError::Retry(_))));
}

#[tokio::test(start_paused = true)]
async fn repair_brings_metal_back_and_destroys_what_is_rented() {
    let sim = sim("");
    let whom = Selector::machines(&["a-metal-000"]);
    let before = failed(&sim, "a-metal-000").await;
    assert_eq!(sim.controls().kill(&whom, Kill {}).unwrap(), 1);
    assert_eq!(machine(&sim, "a-metal-000").await.host, None);
    sim.destroy(&op("op-1"), &before).await.unwrap();
    assert_eq!(machine(&sim, "a-metal-000").await.host, before.host);
    // A Delete means it.
    sim.destroy(&op("op-2"), &machine(&sim, "a-metal-000").await).await.unwrap();
    assert_eq!(machine(&sim, "a-metal-000").await.host, None);

    sim.create(&op("op-3"), &machine(&sim, "a-od-000").await).await.unwrap();
    sim.destroy(&op("op-4"), &failed(&sim, "a-od-000").await).await.unwrap();
    assert_eq!(machine(&sim, "a-od-000").await.host, None);
}

#[tokio::test(start_paused = true)]
async fn clouds_are_found_by_the_prefix_of_an_id() {
    let machine = machine(&sim(""), "a-od-000").await;
    let clouds = Multiplex::new([("a".to_owned(), sim(""))]);
    assert_eq!(clouds.describe().await.unwrap().len(), 10);
    clouds.create(&op("op-1"), &machine).await.unwrap();
    let strange = Multiplex::new([("b".to_owned(), sim(""))]);
    let error = strange.create(&op("op-1"), &machine).await.unwrap_err();
    assert_eq!(error, CloudError::Fatal("no cloud is named \"a\"".into()));
    assert!(matches!(strange.describe().await, Err(CloudError::Fatal(_))), "not its own ids");
    // One that does not answer is not one without hosts.
    let silent = sim("    mishaps: {api_rate: {per_second: 0, burst: 1}}\n");
    silent.describe().await.unwrap();
    let clouds = Multiplex::new([("a".to_owned(), silent)]);
    assert!(matches!(clouds.describe().await, Err(CloudError::Retry(_))));
}
