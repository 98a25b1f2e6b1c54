//! The table of routes, each under both mounts and in every state of its sources (experience
//! chapter §3.6), and what answers say.

use std::time::Duration;

use bigfleet_dashboard::{Config, Holds, ROUTES, Source};
use bigfleet_wire::v1alpha1::MachineState;
use http::StatusCode;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::{
    rig::{Answered, Mood, SECOND, Stubs, Viewed, lead, loopback},
    shard::{Shard, machine},
};

pub(crate) const MOUNTS: [&str; 2] = ["/api/v1", "/api"];

/// Lists of clusters, where a failing cluster is a row.
const ROWS: [&str; 2] = ["/clusters", "/available-capacity"];

#[tokio::test]
async fn every_route_answers_under_both_mounts() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    for route in ROUTES {
        for mount in MOUNTS {
            let Answered { status, content_type, body, text } =
                viewed.get(&format!("{mount}{}", route.example)).await;
            assert_eq!(status, StatusCode::OK, "{mount}{}: {text}", route.example);
            if route.path == "/stream" {
                assert_eq!(content_type, "text/event-stream");
                continue;
            }
            assert_eq!(content_type, "application/json", "{}", route.path);
            assert!(body.is_object(), "{}: {text}", route.path);
            let at = body["queriedAt"].as_str().unwrap_or_default();
            assert!(at.ends_with('Z') && at.contains('T'), "{}: {at}", route.path);
        }
    }
}

#[tokio::test]
async fn a_source_that_is_not_wired_names_its_flag() {
    let viewed = Viewed::start(loopback()).await;
    for route in ROUTES {
        for mount in MOUNTS {
            let answered = viewed.get(&format!("{mount}{}", route.example)).await;
            let Some(source) = route.source else {
                assert_eq!(answered.status, StatusCode::OK, "{}", route.path);
                continue;
            };
            assert_eq!(answered.status, StatusCode::SERVICE_UNAVAILABLE, "{}", route.path);
            let error = answered.body["error"].as_str().unwrap();
            assert!(error.contains(source.flag()), "{}: {error}", route.path);
        }
    }
}

#[tokio::test]
async fn a_source_that_fails_is_a_bad_gateway() {
    let stubs = Stubs::start().await;
    stubs.set(Mood::Failing);
    let viewed = Viewed::start(stubs.config()).await;
    for route in ROUTES.iter().filter(|route| route.source.is_some()) {
        for mount in MOUNTS {
            let answered = viewed.get(&format!("{mount}{}", route.example)).await;
            if ROWS.contains(&route.path) {
                assert_eq!(answered.status, StatusCode::OK, "{}", route.path);
                let rows = answered.body["clusters"].as_array().unwrap();
                assert!(rows.iter().all(|row| row["error"].is_string()), "{rows:?}");
                continue;
            }
            assert_eq!(
                answered.status,
                StatusCode::BAD_GATEWAY,
                "{}: {}",
                route.path,
                answered.text
            );
            assert!(answered.body["error"].is_string() && answered.body["source"].is_string());
        }
    }
}

/// A shard that fails while its coordinator does not.
#[tokio::test]
async fn a_shard_that_fails_is_a_bad_gateway() {
    let stubs = Stubs::start().await;
    stubs.shard.set(Mood::Failing);
    let viewed = Viewed::start(stubs.config()).await;
    let routes = ROUTES.iter().filter(|route| route.source == Some(Source::Shard));
    for (route, mount) in routes.flat_map(|route| MOUNTS.map(|mount| (route, mount))) {
        let answered = viewed.get(&format!("{mount}{}", route.example)).await;
        assert_eq!(answered.status, StatusCode::BAD_GATEWAY, "{}: {}", route.path, answered.text);
        assert_eq!(answered.body["source"], "shard");
    }
}

/// With time that jumps whenever everybody waits.
#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_is_given_up() {
    for shard_alone in [false, true] {
        let stubs = Stubs::start().await;
        if shard_alone {
            stubs.shard.set(Mood::Hanging);
        } else {
            stubs.set(Mood::Hanging);
        }
        let viewed = Viewed::start(stubs.config()).await;
        let wanted = |source| !shard_alone || source == Some(Source::Shard);
        let routes = ROUTES.iter().filter(|route| route.source.is_some() && wanted(route.source));
        for (route, mount) in routes.flat_map(|route| MOUNTS.map(|mount| (route, mount))) {
            let begun = Instant::now();
            let answered = viewed.get(&format!("{mount}{}", route.example)).await;
            let limit = match route.source {
                Some(Source::Kubeconfig) => 60,
                Some(Source::Prometheus) => 10,
                // The coordinator's list, then the shard's answer.
                _ if route.path == "/finops/shard" => 35,
                _ => 15,
            };
            let took = begun.elapsed();
            assert!(took <= Duration::from_secs(limit), "{} took {took:?}", route.path);
            let expected =
                if ROWS.contains(&route.path) { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
            assert_eq!(answered.status, expected, "{}: {}", route.path, answered.text);
        }
    }
}

#[tokio::test]
async fn nothing_is_zero_because_it_is_unknown() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    stubs.prometheus.say("NaN");
    let overview = viewed.ok("/api/v1/fleet/overview").await;
    let fields = ["shards", "clusters", "machines", "shortfalls", "cycleP99Seconds"];
    for field in fields.into_iter().chain(["dollarsPerHour"]) {
        assert!(overview[field].is_null(), "{field}: {overview}");
    }
    assert!(overview["machinesByState"]["idle"].is_null(), "{overview}");
    let snapshot = viewed.ok("/api/v1/finops/snapshot").await;
    for field in ["machines", "idle", "idleShare", "dollarsPerHour", "demandRows"] {
        assert!(snapshot["totals"][field].is_null(), "{field}: {snapshot}");
    }
    assert!(snapshot["configured"][3][27].is_null(), "{snapshot}");
    assert!(snapshot["supplyByBucket"][27].is_null(), "{snapshot}");
    assert!(snapshot["demandByBucket"][27].is_null(), "{snapshot}");
    let other = Stubs::start().await;
    other.prometheus.know_nothing();
    let viewed = Viewed::start(other.config()).await;
    let snapshot = viewed.ok("/api/v1/finops/snapshot").await;
    assert!(snapshot["configured"].is_null() && snapshot["totals"]["machines"].is_null());
    let unchecked = snapshot["unchecked"].as_array().unwrap();
    assert!(unchecked.iter().any(|one| one["id"] == "pinned-on-spot"), "{unchecked:?}");
    let overview = viewed.ok("/api/v1/fleet/overview").await;
    assert!(overview["sampledAtUnixNanos"].is_null() && overview["shards"].is_null());
    let unknown = viewed.get("/api/v1/shards/shard-0").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let topology = viewed.ok("/api/v1/topology").await;
    assert!(topology["coordinator"]["transfersByPhase"].is_null(), "{topology}");
}

/// A rate needs two samples: one that has just begun is not at rest.
#[tokio::test]
async fn whether_a_shard_is_live_can_be_unknown() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    stubs.prometheus.tell("rate(bigfleet_shard_cycle_duration_seconds_count", &[]);
    let list = viewed.ok("/api/v1/shards").await;
    assert_eq!(
        (&list["shards"][0]["pod"], &list["shards"][0]["live"]),
        (&"shard-0".into(), &().into())
    );
    assert!(viewed.ok("/api/v1/shards/shard-0").await["live"].is_null());
    let other = Stubs::start().await;
    other.prometheus.say("0");
    let viewed = Viewed::start(other.config()).await;
    assert_eq!(viewed.ok("/api/v1/shards").await["shards"][0]["live"], false);
    assert_eq!(viewed.ok("/api/v1/shards/shard-0").await["live"], false);
}

#[tokio::test]
async fn what_is_only_on_offer_is_no_part_of_the_idle_share() {
    let stubs = Stubs::start().await;
    let of = |state: &str| serde_json::json!({"capacity_type": "spot", "state": state});
    stubs.prometheus.tell(
        "sum by (capacity_type,state) (bigfleet_shard_inventory_machines)",
        &[
            (of("idle"), &[Some("20")]),
            (of("configured"), &[Some("80")]),
            (of("speculative"), &[Some("900")]),
        ],
    );
    let viewed = Viewed::start(stubs.config()).await;
    let totals = &viewed.ok("/api/v1/finops/snapshot").await["totals"];
    assert_eq!((&totals["idleShare"], &totals["machines"]), (&0.2.into(), &1000.0.into()));
}

/// A process exports only what it has had since its start.
#[tokio::test]
async fn what_a_process_never_had_is_nothing_over_time() {
    let stubs = Stubs::start().await;
    let of = |state: &str| serde_json::json!({"capacity_type": "spot", "state": state});
    let (always, late) = ([Some("1"), Some("1"), Some("1")], [None, None, Some("2")]);
    for metric in ["bigfleet_shard_cost_dollars_per_hour", "bigfleet_shard_inventory_machines"] {
        stubs.prometheus.tell(metric, &[(of("configured"), &always), (of("draining"), &late)]);
    }
    let viewed = Viewed::start(stubs.config()).await;
    let expected = serde_json::json!([0.0, 0.0, 2.0, null]);
    let trend = viewed.ok("/api/v1/finops/trend?duration=3h&step=1h").await;
    assert_eq!(trend["series"][1]["values"], expected, "{trend}");
    let trends = viewed.ok("/api/v1/shards/shard-0/trends?duration=3m&step=1m").await;
    assert_eq!(trends["machinesByState"]["draining"], expected, "{trends}");
}

#[tokio::test]
async fn numbers_come_through() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let overview = viewed.ok("/api/fleet/overview").await;
    assert_eq!((overview["shards"].as_i64(), overview["machines"].as_f64()), (Some(1), Some(3.0)));
    assert_eq!(overview["machinesByState"]["idle"], 3.0);
    let actions = viewed.ok("/api/fleet/actions?duration=10m&step=1m").await;
    assert_eq!(actions["timestamps"].as_array().unwrap().len(), 11);
    assert_eq!(actions["values"][0][0], 3.0);
    assert!(actions["values"][0][1].is_null());
    let snapshot = viewed.ok("/api/finops/snapshot").await;
    assert_eq!(snapshot["redFlags"][0]["id"], "pinned-on-spot");
    assert_eq!(snapshot["configured"][3][27], 3.0);
    let row = &viewed.ok("/api/shards").await["shards"][0];
    assert_eq!((row["pod"].as_str(), row["live"].as_bool()), (Some("shard-0"), Some(true)));
    let asked = stubs.prometheus.asked();
    let raw = "inventory_machines{";
    assert!(
        asked.iter().all(|query| query.contains("sum by") || !query.contains(raw)),
        "{asked:?}"
    );
}

#[tokio::test]
async fn prometheus_is_told_the_login_of_its_url() {
    let stubs = Stubs::start().await;
    stubs.prometheus.take_only("Basic bWU6cEBzcw==");
    let url = |login| Some(format!("http://{login}{}", stubs.prometheus.addr));
    for (login, status) in [("me:p%40ss@", StatusCode::OK), ("", StatusCode::BAD_GATEWAY)] {
        let config = Config { prometheus_url: url(login), ..stubs.config() };
        for path in ["/api/v1/fleet/overview", "/api/v1/finops/trend"] {
            let answered = Viewed::start(config.clone()).await.get(path).await;
            assert_eq!(answered.status, status, "{login}{path}: {}", answered.text);
        }
    }
}

/// A shard does not tell its holds: the dashboard is told, and says what it took.
#[tokio::test]
async fn idle_machines_are_measured_by_the_holds_that_were_told() {
    let stubs = Stubs::start().await;
    let now = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap();
    let mut idle = machine("m-1", "");
    idle.since_unix_nanos = now - 30 * SECOND;
    idle.machine.as_mut().unwrap().set_state(MachineState::Idle);
    stubs.shard.script.machines.send_replace(vec![idle]);
    let path = "/api/v1/finops/shard?shard=shard-0";
    let usual = Viewed::start(stubs.config()).await.ok(path).await;
    assert_eq!(usual["idleHoldSeconds"], serde_json::json!({"onDemand": 600.0, "spot": 60.0}));
    assert_eq!(usual["redFlags"], serde_json::json!([]));
    let holds = Holds { on_demand: Duration::ZERO, spot: Duration::from_secs(2) };
    let short = Viewed::start(Config { holds, ..stubs.config() }).await.ok(path).await;
    assert_eq!(short["idleHoldSeconds"], serde_json::json!({"onDemand": null, "spot": 2.0}));
    assert_eq!(short["redFlags"][0]["id"], "idle-past-hold", "{short}");
}

#[tokio::test]
async fn needs_are_those_of_the_shard() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let needs = viewed.ok("/api/v1/needs?shard=shard-0").await;
    assert_eq!((needs["cycle"].as_i64(), needs["totalNeeds"].as_i64()), (Some(7), Some(2)));
    assert_eq!((&needs["rebuilding"], &needs["computedAtUnixNanos"]), (&false.into(), &9.into()));
    let need = &needs["needs"][0];
    assert_eq!(
        (need["reason"].as_str(), need["clusterId"].as_str()),
        (Some("PRIORITY_STARVED"), Some("prod-a"))
    );
    assert_eq!(need["need"]["interruptionPenaltyBucket"], "0.5");
    let limited = viewed.ok("/api/v1/needs?shard=shard-0&limit=1").await;
    assert_eq!(
        (limited["needs"].as_array().unwrap().len(), &limited["totalNeeds"]),
        (1, &2.into())
    );
    let of_one = viewed.ok("/api/v1/needs?shard=shard-0&cluster=prod-b").await;
    assert_eq!((of_one["needs"].as_array().unwrap().len(), &of_one["totalNeeds"]), (1, &1.into()));
}

#[tokio::test]
async fn a_failing_cluster_is_a_row() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let list = viewed.ok("/api/v1/clusters").await;
    let (good, bad) = (&list["clusters"][0], &list["clusters"][1]);
    assert_eq!(
        (&good["capacityRequests"], &good["pendingCapacityRequests"]),
        (&2.into(), &1.into())
    );
    assert!(good["error"].is_null() && good["upcomingNodes"] == 1);
    assert!(
        bad["capacityRequests"].is_null() && bad["error"].as_str().unwrap().contains("reader role")
    );
    let page = viewed.ok("/api/v1/clusters?limit=1").await;
    assert_eq!((&page["total"], &page["next"]), (&2.into(), &"prod-a".into()));
    let rest = viewed.ok("/api/v1/clusters?limit=1&after=prod-a").await;
    assert_eq!((&rest["clusters"][0]["cluster"], &rest["next"]), (&"prod-b".into(), &().into()));
    let detail = viewed.ok("/api/v1/clusters/prod-a?limit=1").await;
    assert_eq!(detail["requests"][0]["name"], "waits", "what waits comes first");
    assert_eq!(
        (&detail["requestsTruncated"], &detail["nodes"][0]["nodeName"]),
        (&true.into(), &"node-7".into())
    );
    assert_eq!(detail["capacityRequestsByPhase"]["Pending"], 1);
    assert_eq!(detail["pendingCapacityRequests"], good["pendingCapacityRequests"]);
    assert_eq!(viewed.get("/api/v1/clusters/prod-b").await.status, StatusCode::BAD_GATEWAY);
    assert_eq!(viewed.get("/api/v1/clusters/gone").await.status, StatusCode::NOT_FOUND);
    for list in ROWS {
        let one = viewed.ok(&format!("/api/v1{list}?cluster=prod-b")).await;
        assert_eq!((&one["total"], &one["clusters"][0]["cluster"]), (&1.into(), &"prod-b".into()));
        let gone = viewed.get(&format!("/api/v1{list}?cluster=gone")).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND, "{list}: {}", gone.text);
    }
}

#[tokio::test]
async fn a_machine_is_found_by_its_node() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let found = viewed.ok("/api/v1/machines?shard=shard-0&node=node-7").await;
    assert_eq!((&found["total"], &found["machines"][0]["id"]), (&1.into(), &"m-1".into()));
    // Not found is not said while a cluster could not be asked.
    let unsure = viewed.get("/api/v1/machines?shard=shard-0&node=other").await;
    assert_eq!(unsure.status, StatusCode::BAD_GATEWAY);
}

/// Everything that leads to a machine knows its id, and not always its shard.
#[tokio::test]
async fn a_machine_is_found_in_whichever_shard_it_is() {
    let (stubs, other) = (Stubs::start().await, Shard::start().await);
    let (here, there) = (stubs.shard.addr.to_string(), other.addr.to_string());
    lead(&stubs.coordinator, &[("shard-0", &here), ("shard-1", &there)]);
    stubs.shard.script.machines.send_replace(vec![machine("m-2", "prod-a")]);
    other.script.machines.send_replace(vec![machine("m-1", "prod-a"), machine("m-10", "prod-a")]);
    let viewed = Viewed::start(stubs.config()).await;
    let ids = |list: &serde_json::Value| -> Vec<String> {
        let rows = list["machines"].as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    for shard in ["shard-0", "shard-1"] {
        let found = viewed.ok(&format!("/api/v1/machines?shard={shard}&node=node-7")).await;
        assert_eq!((&found["shard"], ids(&found)), (&"shard-1".into(), vec!["m-1".to_owned()]));
        let found = viewed.ok(&format!("/api/v1/machines?shard={shard}&prefix=m-10")).await;
        assert_eq!((&found["shard"], ids(&found)), (&"shard-1".into(), vec!["m-10".to_owned()]));
        let found = viewed.ok(&format!("/api/v1/machines/{shard}/m-1")).await;
        assert_eq!((&found["shard"], &found["machine"]["id"]), (&"shard-1".into(), &"m-1".into()));
    }
    // What the asked shard has stays there.
    let own = viewed.ok("/api/v1/machines?shard=shard-0&prefix=m-").await;
    assert_eq!((&own["shard"], ids(&own)), (&"shard-0".into(), vec!["m-2".to_owned()]));
    let none = viewed.ok("/api/v1/machines?shard=shard-0&prefix=m-7").await;
    assert_eq!((&none["shard"], ids(&none).len()), (&"shard-0".into(), 0));
    assert_eq!(viewed.get("/api/v1/machines/shard-0/m-7").await.status, StatusCode::NOT_FOUND);
    // While a shard does not answer, nobody knows what it has.
    other.set(Mood::Failing);
    let unsure = viewed.get("/api/v1/machines/shard-0/m-8").await;
    assert_eq!(unsure.status, StatusCode::BAD_GATEWAY, "{}", unsure.text);
    let unsure = viewed.get("/api/v1/machines?shard=shard-0&prefix=m-8").await;
    assert_eq!(unsure.status, StatusCode::BAD_GATEWAY, "{}", unsure.text);
    assert!(unsure.text.contains("shard-1"), "{}", unsure.text);
}

/// With time that jumps whenever everybody waits.
#[tokio::test(start_paused = true)]
async fn silent_clusters_are_waited_for_together() {
    let stubs = Stubs::start().await;
    stubs.kube.set(Mood::Hanging);
    let viewed = Viewed::start(stubs.config()).await;
    let begun = Instant::now();
    let unsure = viewed.get("/api/v1/machines?shard=shard-0&node=node-7").await;
    assert_eq!(unsure.status, StatusCode::BAD_GATEWAY, "{}", unsure.text);
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn bad_parameters_and_unknown_things_are_told_apart() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    for (path, status) in [
        ("/needs", 400),
        ("/needs?shard=", 400),
        ("/needs?shard=shard-0&limit=0", 400),
        ("/needs?shard=shard-0&limit=x", 400),
        ("/needs?shard=shard-9", 404),
        ("/machines", 400),
        ("/machines?shard=shard-0&state=gone", 400),
        ("/machines?shard=shard-0&page=***", 400),
        ("/machines/shard-0/m-9", 404),
        ("/machines/shard-9/m-1", 404),
        ("/decisions?shard=shard-0&after=x", 400),
        ("/explain?shard=shard-0&cluster=prod-a", 400),
        ("/explain?shard=shard-0&cluster=prod-a&fingerprint=g", 404),
        ("/whatif?shard=shard-0&cluster=prod-a", 400),
        ("/whatif?shard=shard-0&cluster=prod-a&need=%7B%22count%22%3A1%7D", 400),
        (
            "/whatif?shard=shard-0&cluster=prod-a&need=%7B%22aggregateResources%22%3A%7B%7D,%22priority%22:-1%7D",
            400,
        ),
        ("/fleet/actions?duration=25h", 400),
        ("/fleet/actions?step=2h", 400),
        ("/fleet/actions?duration=1", 400),
        ("/stream", 400),
        ("/stream?topics=all", 400),
        ("/stream?topics=needs:shard-9", 404),
        ("/shard-reports?shard=shard-9", 404),
        ("/nothing", 404),
        // No text at all.
        ("/clusters/%FF", 400),
        ("/shards/%FF", 400),
        ("/shards/%FF/trends", 400),
        ("/machines/shard-0/%FF", 400),
        ("/machines/%FF/m-1", 400),
    ] {
        let answered = viewed.get(&format!("/api/v1{path}")).await;
        assert_eq!(answered.status.as_u16(), status, "{path}: {}", answered.text);
        assert!(answered.body["error"].is_string(), "{path}: {}", answered.text);
    }
}

#[tokio::test]
async fn shards_are_seen_while_the_coordinator_is_down() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    viewed.ok("/api/v1/sessions?shard=shard-0").await;
    // Until the list is asked for again.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3)).await;
    tokio::time::resume();
    stubs.coordinator.always(bigfleet_scripted::coordinator::Answer::Refuse(
        tonic::Code::Unavailable,
        "no quorum".to_owned(),
    ));
    viewed.ok("/api/v1/needs?shard=shard-0").await;
    assert_eq!(viewed.get("/api/v1/shard-reports").await.status, StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn viewers_who_ask_the_same_share_one_call() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let ask = || viewed.ok("/api/v1/needs?shard=shard-0");
    let (first, second, third) = tokio::join!(ask(), ask(), ask());
    assert_eq!((&first, &first), (&second, &third));
    assert_eq!(*stubs.shard.script.asked.borrow(), ["inspect_needs"]);
}

#[tokio::test]
async fn nothing_can_be_changed() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let paths = ["/api/v1/needs?shard=shard-0", "/api/config", "/", "/auth/login"];
        // It ends like the only one that takes more than reads.
        for path in paths.into_iter().chain(["/api/v1/machines/auth/logout"]) {
            let request = http::Request::builder().method(method).uri(path);
            let request = request.body(axum::body::Body::empty()).unwrap();
            let response = viewed.response(request).await;
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_eq!(response.headers()["allow"], "GET, HEAD", "{method} {path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert!(body["error"].as_str().unwrap().contains("GET"), "{method} {path}: {body}");
        }
    }
    viewed.ok("/api/v1/topology").await;
    let asked = stubs.coordinator.asked();
    assert!(
        asked.iter().all(|call| call.starts_with("List") || call.starts_with("Raft")),
        "{asked:?}"
    );
}
