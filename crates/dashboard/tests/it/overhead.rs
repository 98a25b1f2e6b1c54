//! What the dashboard adds to a shard's own time, with 20,000 needs (experience chapter §3.6: at
//! most 3 ms). Prints; run it alone on a quiet machine:
//!
//! `cargo test --release -p bigfleet-dashboard --test it -- --ignored --nocapture overhead`

use std::{sync::Arc, time::Duration};

use bigfleet_net::{grpc::connect, message_limits, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    CapacityNeed, InspectNeedsRequest, MatchingSupply, NeedView, NodeSelectorRequirement,
    Resources, shard_read_client::ShardReadClient,
};
use tokio::time::Instant;

use crate::{
    rig::{Stubs, Viewed},
    shard::need,
};

const NEEDS: usize = 20_000;
const ROUNDS: u32 = 15;

/// A need such as operators send, one in ten unmet.
fn real(number: usize) -> NeedView {
    let quantities = |cpu: &str| {
        [("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), "64Gi".to_owned())].into()
    };
    let requirement = |key: &str, value: &str| NodeSelectorRequirement {
        key: key.to_owned(),
        operator: 1,
        values: vec![value.to_owned(), "other".to_owned()],
    };
    let unmet = number % 10 == 0;
    NeedView {
        need: Some(CapacityNeed {
            requirements: vec![
                requirement("topology.kubernetes.io/zone", "eu-west-1a"),
                requirement("kubernetes.io/arch", "amd64"),
            ],
            aggregate_resources: quantities("16"),
            min_unit: quantities("2"),
            priority: 1_000,
            interruption_penalty_bucket: 9,
            reclamation_penalty_bucket: 5,
            ..CapacityNeed::default()
        }),
        satisfied: !unmet,
        residual_deficit: unmet.then(|| Resources { resources: quantities("4") }),
        matching_supply: unmet.then(MatchingSupply::default),
        ..need(&format!("cluster-{}", number % 100), &format!("{number:032x}"))
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn overhead_of_20_000_needs() {
    let stubs = Stubs::start().await;
    stubs.shard.script.needs.send_replace(Arc::new((0..NEEDS).map(real).collect()));
    let viewed = Viewed::start(stubs.config()).await;
    let addr = stubs.shard.addr.to_string();
    let channel = connect(&addr, &Security::Plaintext, Rule::any_certificate()).await.unwrap();
    let mut client = message_limits!(ShardReadClient::new(channel));
    let (mut alone, mut whole, mut bytes) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let request = InspectNeedsRequest { limit: 50_000, ..Default::default() };
        let mut frames = client.inspect_needs(request).await.unwrap().into_inner();
        let mut count = 0;
        while let Some(frame) = frames.message().await.unwrap() {
            count += 1;
            std::hint::black_box(frame);
        }
        assert_eq!(count, NEEDS + 1);
        alone.push(begun.elapsed());
        // Another limit is another question: nothing is shared.
        let path = format!("/api/v1/needs?shard=shard-0&limit={}", 50_000 + round);
        let begun = Instant::now();
        let answered = viewed.raw(&path).await;
        whole.push(begun.elapsed());
        bytes = answered.len();
    }
    let (alone, whole) = (median(alone), median(whole));
    let added = whole.saturating_sub(alone);
    println!(
        "{NEEDS} needs, {bytes} bytes of JSON: the shard's stream alone {alone:?}, through the \
         dashboard {whole:?}, added {added:?} (medians of {ROUNDS})"
    );
}
