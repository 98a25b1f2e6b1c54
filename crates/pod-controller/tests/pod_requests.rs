//! What the Kubernetes libraries count for a pod, line by line (§8.3, invariant 13).

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{collections::BTreeMap, fs};

use bigfleet_model::Quantity;
use bigfleet_unschedulable_pod_controller::request::effective;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    pod: serde_json::Value,
    requests: BTreeMap<String, String>,
}

fn by_value(texts: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, i128> {
    let value = |text: &str| text.parse::<Quantity>().unwrap().nanos();
    let all = texts.into_iter().map(|(name, text)| (name, value(&text)));
    all.filter(|(_, nanos)| *nanos != 0).collect()
}

#[test]
fn pods_inv_13_the_request_is_what_the_libraries_count() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pod-requests.jsonl");
    let file = fs::read_to_string(path).unwrap();
    let mut cases = 0;
    for line in file.split('\n').filter(|line| !line.is_empty()) {
        let case: Case = serde_json::from_str(line).unwrap();
        let pod: Pod = serde_json::from_value(case.pod).unwrap();
        let ours = effective(&pod).texts().into_iter().map(|(name, text)| (name, text.to_string()));
        assert_eq!(by_value(ours), by_value(case.requests), "{}\n{line}", case.name);
        cases += 1;
    }
    assert_eq!(cases, 600);
}
