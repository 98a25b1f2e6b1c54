//! Answers of 20,000 rows.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    rig::{Stubs, Viewed},
    scope::two,
    shard::{CLUSTERS, need},
};

const NEEDS: usize = 20_000;

/// As many of either cluster.
fn fill(stubs: &Stubs) {
    let need = |number: usize| need(CLUSTERS[number % 2], &format!("f-{number}"));
    stubs.shard.script.needs.send_replace(Arc::new((0..NEEDS).map(need).collect()));
}

fn fingerprints(body: &Value) -> Vec<&str> {
    let rows = body["needs"].as_array().unwrap().iter();
    rows.map(|row| row["profileFingerprint"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn all_rows_arrive_in_the_shards_order() {
    let stubs = Stubs::start().await;
    fill(&stubs);
    let viewed = Viewed::start(stubs.config()).await;
    let whole = viewed.ok("/api/v1/needs?shard=shard-0&limit=20000").await;
    let expected: Vec<String> = (0..NEEDS).map(|number| format!("f-{number}")).collect();
    assert_eq!(fingerprints(&whole), expected);
    assert_eq!(whole["totalNeeds"], NEEDS);
    // What is left out is still counted.
    let usual = viewed.ok("/api/v1/needs?shard=shard-0").await;
    assert_eq!((fingerprints(&usual).len(), &usual["totalNeeds"]), (2_000, &NEEDS.into()));
}

#[tokio::test]
async fn rows_of_others_are_neither_shown_nor_counted() {
    let (stubs, a, b, nobody) = two().await;
    fill(&stubs);
    for (viewer, own, rest) in [(&a, 0, 2), (&b, 1, 2)] {
        let seen = viewer.ok("/api/v1/needs?shard=shard-0&limit=20000").await;
        let expected: Vec<String> =
            (own..NEEDS).step_by(rest).map(|number| format!("f-{number}")).collect();
        assert_eq!(fingerprints(&seen), expected);
        assert_eq!(seen["totalNeeds"], NEEDS / 2);
        let usual = viewer.ok("/api/v1/needs?shard=shard-0").await;
        assert_eq!(
            (fingerprints(&usual).len(), &usual["totalNeeds"]),
            (2_000, &(NEEDS / 2).into())
        );
    }
    let none = nobody.ok("/api/v1/needs?shard=shard-0").await;
    // Nor were they asked for.
    let inspected = stubs.shard.script.inspected.borrow().clone();
    let asked =
        [("prod-a", 20_000), ("prod-a", 2_000), ("prod-b", 20_000), ("prod-b", 2_000), ("", 1)];
    assert_eq!(inspected, asked.map(|(cluster, limit)| (cluster.to_owned(), limit)));
    assert_eq!((fingerprints(&none).len(), &none["totalNeeds"]), (0, &0.into()));
}
