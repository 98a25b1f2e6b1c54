//! Needs are read by few at once, however many ask.

use bigfleet_dashboard::Config;
use futures_util::future::join_all;
use http::StatusCode;
use serde_json::json;

use crate::{
    issuer::Issuer,
    rig::{Stubs, Viewed},
    shard::{READERS, need},
    sign_in::{oidc, sign_in},
};

const PATH: &str = "/api/v1/needs?shard=shard-0";

/// Whoever sees one cluster asks for that one: nothing is shared, and one notice wakes them all.
#[tokio::test]
async fn thirty_who_see_a_cluster_each_take_turns() {
    const VIEWERS: usize = 30;
    let (stubs, issuer) = (Stubs::start().await, Issuer::start().await);
    let cluster = |number: usize| format!("team-{number}");
    let needs = (0..VIEWERS).map(|number| need(&cluster(number), "f")).collect();
    stubs.shard.script.needs.send_replace(std::sync::Arc::new(needs));
    let viewed = Viewed::start(Config { auth: oidc(&issuer), ..stubs.config() }).await;
    let mut viewers = Vec::new();
    for number in 0..VIEWERS {
        let claims = json!({"groups": ["sre"], "clusters": [cluster(number)]});
        viewers.push(sign_in(&viewed, &issuer, claims).await);
    }
    stubs.shard.script.flowing.send_replace(false);
    let crowded = async {
        // Nobody leaves before there are as many as there may be.
        let mut crowd = stubs.shard.script.crowd.subscribe();
        crowd.wait_for(|crowd| *crowd >= READERS / 2).await.unwrap();
        stubs.shard.script.flowing.send_replace(true);
    };
    let asking = join_all(viewers.iter().map(|viewer| viewer.get(PATH)));
    let (answers, ()) = tokio::join!(asking, crowded);
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        assert_eq!(answer.body["needs"][0]["clusterId"], cluster(number));
    }
    // Other dashboards and command lines read, too.
    assert_eq!(*stubs.shard.script.crowd.borrow(), READERS / 2);
}

#[tokio::test]
async fn a_shard_whose_places_are_taken_is_asked_again() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let script = &stubs.shard.script;
    let others = script.readers.acquire_many(READERS as u32).await.unwrap();
    let mut asked = script.asked.subscribe();
    let leaving = async {
        asked.wait_for(|asked| asked.contains(&"inspect_needs")).await.unwrap();
        drop(others);
    };
    let (needs, ()) = tokio::join!(viewed.ok(PATH), leaving);
    assert_eq!(needs["totalNeeds"], 2);
}

/// With time that jumps whenever everybody waits.
#[tokio::test(start_paused = true)]
async fn a_shard_whose_places_stay_taken_says_so() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let _others = stubs.shard.script.readers.acquire_many(READERS as u32).await.unwrap();
    let refused = viewed.get(PATH).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    assert!(refused.text.contains("8 readers are here already"), "{}", refused.text);
}

/// Half of the rows would look like all of them.
#[tokio::test(start_paused = true)]
async fn a_shard_that_falls_silent_among_its_rows_has_failed() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    stubs.shard.script.flowing.send_replace(false);
    let refused = viewed.get(PATH).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    assert_eq!(refused.body["source"], "shard");
    assert!(refused.text.contains("no answer in time"), "{}", refused.text);
}
