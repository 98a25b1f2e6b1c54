//! Row 31 in full: ten thousand pods at once, at the rates that processes have by default.
//!
//! `cargo test -p bigfleet-e2e --test whole -- --ignored --nocapture flood`

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, keys};
use bigfleet_e2e::{fleet::Part, measure::number, tap::RollUp, wait::within};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::site::{Flags, Site};

/// The default of operators.
const INTERVAL: Duration = Duration::from_secs(10);

/// Nothing here takes that long.
const LIMIT: Duration = Duration::from_secs(1800);

#[ignore = "takes about a quarter of an hour; BIGFLEET_FLOOD_PODS, 10000 unless given"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_31_a_flood_of_pods_does_not_delay_roll_ups() {
    let pods = u32::try_from(number("BIGFLEET_FLOOD_PODS", 10_000)).unwrap();
    let count = usize::try_from(pods).unwrap();
    // A hundred pods fill a machine by what they ask for, and a node takes some more.
    let machines = pods.div_ceil(100) + 10;
    let flags = Flags {
        provider: vec![
            format!(
                "--tier={{name: vm, type: m4, capacity: ON_DEMAND, count: {machines}, \
                 price: 0.2, resources: {{cpu: 4, memory: 16Gi}}}}"
            ),
            "--latency={create: 1s, configure: 1s, drain: 200ms, delete: 200ms}".to_owned(),
            "--interruption-factor=0".to_owned(),
        ],
        operator: vec![format!("--rollup-interval={}s", INTERVAL.as_secs())],
        pod_controller: Vec::new(),
    };
    let Some(mut site) = Site::start_or_skip(flags).await else { return };

    let began = Instant::now();
    site.create_deployment("web", pods, Some("cpu=40m"));
    let cluster = &site.cluster;
    within(LIMIT, "all pods", || async { cluster.count::<Pod>().await == count }).await;
    println!("{pods} pods were there after {:?}", began.elapsed());
    within(LIMIT, "a request for each", || async {
        cluster.count::<CapacityRequest>().await == count
    })
    .await;
    println!("{pods} requests were there after {:?}", began.elapsed());
    within(LIMIT, "all of them acknowledged", || async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let requests = cluster.all::<CapacityRequest>().await;
        requests.iter().all(|one| one.phase() == CapacityRequestPhase::Acknowledged)
    })
    .await;
    println!("all were acknowledged after {:?}", began.elapsed());
    within(LIMIT, "all of them run", || async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.running("default", "web").await == count
    })
    .await;
    println!("all ran after {:?} on {} nodes", began.elapsed(), cluster.nodes().await.len());

    let requests = cluster.all::<CapacityRequest>().await;
    let owners: BTreeSet<&String> =
        requests.iter().filter_map(|request| request.labels().get(keys::OWNED_BY_POD)).collect();
    assert_eq!((requests.len(), owners.len()), (count, count), "one request for each pod");

    let roll_ups = site.tap.roll_ups();
    let newest = &roll_ups.last().unwrap().needs;
    assert_eq!(newest.needs.len(), 1, "one shape, one need");
    let sessions: BTreeSet<usize> = roll_ups.iter().map(|one| one.session).collect();
    assert_eq!(sessions.len(), 1, "the session stood");
    let (built, passed) = gaps(&roll_ups);
    println!("{} roll-ups, at most {built:?} apart; {passed:?} as they passed", roll_ups.len());
    assert!(built.max(passed) <= INTERVAL * 3 / 2, "{built:?}, {passed:?}");
    let parts: [(&str, &mut Part); 3] = [
        ("operator", &mut site.operator),
        ("pod controller", &mut site.pod_controller),
        ("shard", &mut site.shard),
    ];
    for (name, part) in parts {
        println!("{name}: {} MiB", part.process().resident_bytes().unwrap_or_default() >> 20);
    }

    let began = Instant::now();
    site.cluster.scale("default", "web", 0).await;
    site.until_empty(LIMIT).await;
    println!("nothing was left after {:?}", began.elapsed());
}

/// The longest times between two roll-ups, as they were built and as they came by.
fn gaps(roll_ups: &[RollUp]) -> (Duration, Duration) {
    let pairs = || roll_ups.windows(2).map(|pair| (&pair[0], &pair[1]));
    let built = pairs().map(|(one, next)| {
        let nanos = next.needs.timestamp_unix_nanos - one.needs.timestamp_unix_nanos;
        Duration::from_nanos(u64::try_from(nanos).unwrap())
    });
    let passed = pairs().map(|(one, next)| next.at - one.at);
    (built.max().unwrap(), passed.max().unwrap())
}
