//! What roll-ups cost: time at 25,000 requests, memory at 250,000.
//!
//! `cargo run --release -p bigfleet-operator --example rollup_cost [distinct needs]`

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::{Change, ObjectKey};
use bigfleet_operator::rollup::{Ledger, Projector, Request};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn object(number: usize, distinct: usize) -> CapacityRequest {
    let kind = number % distinct;
    let object = serde_json::from_value(json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest",
        "metadata": {
            "name": format!("cr-pod-web-{number:06}-0123456789"), "namespace": format!("team-{}", kind % 50),
            "uid": format!("00000000-0000-4000-8000-{number:012}"), "resourceVersion": number.to_string(),
            "generation": 1,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p",
                "uid": format!("00000000-0000-4000-9000-{number:012}")}],
        },
        "spec": {
            "priority": kind, "resources": {"cpu": format!("{}m", 100 + number % 7), "memory": "1Gi"},
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
        },
        "status": {
            "phase": "Acknowledged", "acknowledgedAt": "2026-01-01T00:00:00Z", "observedGeneration": 1,
            "conditions": [{"type": "Acknowledged", "status": "True", "reason": "RollupAccepted",
                "message": "the shard has accepted this demand",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}],
        },
    }));
    object.unwrap_or_else(|error| panic!("{error}"))
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn requests(
    projector: &Projector,
    count: usize,
    distinct: usize,
) -> Vec<(ObjectKey, Arc<Request>)> {
    (0..count)
        .map(|number| {
            let object = object(number, distinct);
            (ObjectKey::of(&object), Arc::new(projector.project(&object)))
        })
        .collect()
}

fn put((key, after): &(ObjectKey, Arc<Request>)) -> Change<Request> {
    Change::Put { key: key.clone(), before: None, after: after.clone() }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let distinct = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let projector = Projector::default();
    let all = requests(&projector, 25_000, distinct);
    let whole = Change::Swapped(all.iter().map(put).collect());
    let times = (0..9).map(|_| {
        let begun = Instant::now();
        let mut ledger = Ledger::new("c");
        ledger.apply(&whole);
        let bytes = ledger.build(1).encoded_len();
        assert!(bytes > 0);
        begun.elapsed()
    });
    println!("full build, 25,000 requests, {distinct} needs: {:?}", median(times.collect()));
    let mut ledger = Ledger::new("c");
    ledger.apply(&whole);
    ledger.build(1);
    let times = (0..101).map(|number| {
        let (key, before) = all[number * 7].clone();
        let begun = Instant::now();
        ledger.apply(&Change::Gone { key: key.clone(), before: before.clone() });
        ledger.apply(&Change::Put { key, before: None, after: before });
        ledger.build(2);
        begun.elapsed()
    });
    println!("incremental, one request changed: {:?}", median(times.collect()));
    drop((ledger, all, whole));
    let before = resident();
    let kept: HashMap<ObjectKey, Arc<Request>> =
        requests(&projector, 250_000, distinct).into_iter().collect();
    let mut ledger = Ledger::new("c");
    for entry in &kept {
        ledger.apply(&put(&(entry.0.clone(), entry.1.clone())));
    }
    ledger.build(3);
    println!("250,000 requests: {} MiB more resident", (resident() - before) / 1024);
}
