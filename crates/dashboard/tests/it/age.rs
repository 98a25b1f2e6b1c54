//! Sources that answer, and know too little: what is old says how old it is, what is being rebuilt
//! says so, under both mounts (experience chapter §1.3).

use bigfleet_dashboard::{ROUTES, Source};
use bigfleet_wire::v1alpha1::{ListShardReportsResponse, ListShardsResponse, ShardRegistryEntry};
use serde_json::{Value, json};

use crate::{
    rig::{SECOND, Stubs, Viewed},
    routes::MOUNTS,
};

/// When the stubs' data was computed, long ago: by route, where the answer says it.
const COMPUTED: [(&str, &str, i64); 8] = [
    ("/topology", "/shards/0/lastHeartbeatUnixNs", 1_700_000_100 * SECOND),
    ("/shard-reports", "/reports/0/receivedAtUnixNs", 1_700_000_100 * SECOND),
    ("/needs", "/computedAtUnixNanos", 9),
    ("/decisions", "/decisions/0/timeUnixNanos", 4),
    ("/finops/shard", "/computedAtUnixNanos", 9),
    ("/machines", "/computedAtUnixNanos", 9),
    ("/explain", "/computedAtUnixNanos", 9),
    ("/whatif", "/computedAtUnixNanos", 9),
];

/// Routes of a shard that are as of its last cycle, whose number they say beside its time.
const OF_A_CYCLE: [&str; 4] = ["/finops/shard", "/machines", "/explain", "/whatif"];

/// Routes that tell what is so when they are asked: their age is the question's.
const AS_ASKED: [&str; 9] = [
    "/health",
    "/config",
    "/clusters",
    "/clusters/{id}",
    "/available-capacity",
    "/finops/savings",
    "/machines/{shard}/{id}",
    "/sessions",
    "/stream",
];

#[tokio::test]
async fn what_is_old_says_how_old_it_is() {
    let stubs = Stubs::start().await;
    // A fleet that was last scraped in 2023.
    stubs.prometheus.say("1700000000.5");
    let viewed = Viewed::start(stubs.config()).await;
    for route in ROUTES.iter().filter(|route| route.path != "/stream") {
        for mount in MOUNTS {
            let body = viewed.ok(&format!("{mount}{}", route.example)).await;
            let said = |pointer: &str| body.pointer(pointer).cloned().unwrap_or_default();
            if route.source == Some(Source::Prometheus) {
                let sampled = said("/sampledAtUnixNanos");
                assert_eq!(sampled, json!(1_700_000_000_500_000_000_i64), "{}: {body}", route.path);
                assert!(said("/scrapeIntervalSeconds").is_number(), "{}: {body}", route.path);
            } else if let Some((_, at, when)) = COMPUTED.iter().find(|one| one.0 == route.path) {
                assert_eq!(said(at), json!(when), "{}: {body}", route.path);
                if OF_A_CYCLE.contains(&route.path) {
                    assert_eq!(said("/cycle"), json!(7), "{}: {body}", route.path);
                }
            } else {
                assert!(AS_ASKED.contains(&route.path), "{}: how old is it?", route.path);
            }
        }
    }
}

#[tokio::test]
async fn a_shard_is_as_old_as_its_own_samples() {
    let stubs = Stubs::start().await;
    stubs.prometheus.say("1700000100");
    let silent = (json!({ "pod": "silent" }), &[Some("1700000000")][..]);
    stubs.prometheus.tell("pod=\"silent\"", &[silent]);
    let viewed = Viewed::start(stubs.config()).await;
    for (path, at) in [
        ("/shards", 1_700_000_100),
        ("/shards/shard-0", 1_700_000_100),
        ("/shards/silent", 1_700_000_000),
        ("/shards/silent/trends?duration=1h&step=30s", 1_700_000_000),
    ] {
        let body = viewed.ok(&format!("/api/v1{path}")).await;
        assert_eq!(body["sampledAtUnixNanos"], json!(at * SECOND), "{path}: {body}");
    }
}

#[tokio::test]
async fn what_is_being_rebuilt_is_not_empty() {
    let stubs = Stubs::start().await;
    stubs.shard.set_cycle(0);
    let unheard = ShardRegistryEntry {
        shard_id: "shard-0".to_owned(),
        address: stubs.shard.addr.to_string(),
        ..Default::default()
    };
    stubs.coordinator.reply(ListShardsResponse { shards: vec![unheard], leading_ms: 0 });
    stubs.coordinator.reply(ListShardReportsResponse::default());
    let viewed = Viewed::start(stubs.config()).await;
    for mount in MOUNTS {
        let needs = viewed.ok(&format!("{mount}/needs?shard=shard-0")).await;
        let computed = &needs["computedAtUnixNanos"];
        assert_eq!((&needs["rebuilding"], computed), (&true.into(), &Value::Null));
        let reports = viewed.ok(&format!("{mount}/shard-reports")).await;
        let silent = &reports["silentShards"][0];
        assert_eq!((&reports["rebuilding"], silent), (&true.into(), &"shard-0".into()));
        let topology = viewed.ok(&format!("{mount}/topology")).await;
        assert_eq!(topology["rebuilding"], true);
        assert!(topology["shards"][0]["lastHeartbeatUnixNs"].is_null());
        // A shard that has not decided yet says so with its cycle.
        for route in ROUTES.iter().filter(|route| OF_A_CYCLE.contains(&route.path)) {
            let body = viewed.ok(&format!("{mount}{}", route.example)).await;
            assert_eq!(body["cycle"], 0, "{}: {body}", route.path);
            assert!(body["computedAtUnixNanos"].is_null(), "{}: {body}", route.path);
        }
    }
    // Nobody is registered: that is empty.
    stubs.coordinator.reply(ListShardsResponse::default());
    let viewed = Viewed::start(stubs.config()).await;
    assert_eq!(viewed.ok("/api/v1/shard-reports").await["rebuilding"], false);
    assert_eq!(viewed.ok("/api/v1/topology").await["rebuilding"], false);
}
