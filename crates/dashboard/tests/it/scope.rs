//! Two viewers with different clusters: neither ever reads the name of the other's.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bigfleet_dashboard::{Config, ROUTES};
use bigfleet_wire::v1alpha1::{CapacityType, DecisionRecord, MachineState};
use http::StatusCode;
use serde_json::json;

use crate::{
    issuer::Issuer,
    rig::{Mood, PATIENCE, Stubs, Viewed, lead},
    shard::{Shard, machine},
    sign_in::{oidc, sign_in},
    stream::Reader,
};

pub(crate) async fn two() -> (Stubs, Viewed, Viewed, Viewed) {
    let (stubs, issuer) = (Stubs::start().await, Issuer::start().await);
    let viewed = Viewed::start(Config { auth: oidc(&issuer), ..stubs.config() }).await;
    let of = |clusters: &[&str]| json!({"groups": ["sre"], "clusters": clusters});
    let a = sign_in(&viewed, &issuer, of(&["prod-a"])).await;
    let b = sign_in(&viewed, &issuer, of(&["prod-b"])).await;
    // A claim that is missing is a list of nothing.
    let nobody = sign_in(&viewed, &issuer, json!({"groups": ["sre"]})).await;
    (stubs, a, b, nobody)
}

#[tokio::test]
async fn no_route_names_a_cluster_out_of_scope() {
    let (_stubs, a, b, nobody) = two().await;
    for route in ROUTES.iter().filter(|route| route.path != "/stream") {
        for mount in ["/api/v1", "/api"] {
            let path = format!("{mount}{}", route.example);
            // At once, so that a shared answer of one would show at the other.
            let (of_a, of_b, of_nobody) =
                tokio::join!(a.get(&path), b.get(&path), nobody.get(&path));
            assert_eq!(of_a.status, StatusCode::OK, "{path}: {}", of_a.text);
            assert!(!of_a.text.contains("prod-b"), "{path}: {}", of_a.text);
            assert!(!of_nobody.text.contains("prod-b"), "{path}: {}", of_nobody.text);
            let names_a = route.example.contains("prod-a");
            if names_a {
                assert_eq!(of_b.status, StatusCode::FORBIDDEN, "{path}: {}", of_b.text);
                assert_eq!(of_nobody.status, StatusCode::FORBIDDEN, "{path}");
                continue;
            }
            assert!(!of_b.text.contains("prod-a"), "{path}: {}", of_b.text);
            assert!(!of_nobody.text.contains("prod-a"), "{path}: {}", of_nobody.text);
        }
    }
}

#[tokio::test]
async fn a_cluster_out_of_scope_is_forbidden_wherever_it_is_asked_for() {
    let (_stubs, a, ..) = two().await;
    for path in [
        "/needs?shard=shard-0&cluster=prod-b",
        "/clusters/prod-b",
        "/clusters?cluster=prod-b",
        "/available-capacity?cluster=prod-b",
        "/machines?shard=shard-0&cluster=prod-b",
        "/sessions?shard=shard-0&cluster=prod-b",
        "/decisions?shard=shard-0&cluster=prod-b",
        "/explain?shard=shard-0&cluster=prod-b&fingerprint=f",
        "/whatif?shard=shard-0&cluster=prod-b&need=%7B%7D",
    ] {
        let answered = a.get(&format!("/api/v1{path}")).await;
        assert_eq!(answered.status, StatusCode::FORBIDDEN, "{path}: {}", answered.text);
    }
}

#[tokio::test]
async fn what_is_hidden_is_not_counted_but_still_explains() {
    let (_stubs, a, _, nobody) = two().await;
    let needs = a.ok("/api/v1/needs?shard=shard-0").await;
    assert_eq!((&needs["totalNeeds"], needs["needs"].as_array().unwrap().len()), (&1.into(), 1));
    let machines = a.ok("/api/v1/machines?shard=shard-0").await;
    assert!(machines["total"].is_null());
    assert_eq!(machines["machines"].as_array().unwrap().len(), 2);
    let explained = a.ok("/api/v1/explain?shard=shard-0&cluster=prod-a&fingerprint=f").await;
    assert_eq!(explained["hiddenAhead"], json!({"needs": 1, "machinesTaken": 2}));
    assert_eq!(explained["ahead"].as_array().unwrap().len(), 1);
    // What nobody compared saved nothing that is known, which is not 0.
    let savings = "/api/v1/finops/savings?shard=shard-0";
    let (some, none) = (a.ok(savings).await, nobody.ok(savings).await);
    assert_eq!((&some["compared"], &some["savedPerHour"]), (&1.into(), &0.75.into()), "{some}");
    assert_eq!((&none["compared"], &none["savedPerHour"]), (&0.into(), &().into()), "{none}");
    let detail = a.ok("/api/v1/machines/shard-0/m-1").await;
    assert!(detail["transitions"][1]["clusterId"].is_null());
    assert_eq!(detail["transitions"][0]["ofSequence"], "5");
    for of_others in [1, 2] {
        let transition = &detail["transitions"][of_others];
        assert_eq!(transition["error"], "", "{transition}");
        assert!(transition["ofSequence"].is_null(), "{transition}");
    }
    // The other cluster cannot be read: who was never asked is not missed.
    let unknown = a.get("/api/v1/machines?shard=shard-0&node=node-9").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND, "{}", unknown.text);
    assert_eq!(a.ok("/api/v1/clusters").await["total"], 1);
}

/// A shard's token holds the last machine that it looked at, and how many there are.
#[tokio::test]
async fn tokens_of_pages_tell_nothing() {
    let (stubs, a, ..) = two().await;
    let hidden = (0..1_001).map(|at| machine(&format!("h-of-prod-b-{at:04}"), "prod-b"));
    let own = ["m-1", "m-2"].map(|id| machine(id, "prod-a"));
    stubs.shard.script.machines.send_replace(hidden.chain(own).collect());
    let path = "/api/v1/machines?shard=shard-0&limit=1";
    let page = a.ok(path).await;
    assert_eq!(ids(&page), ["m-1"]);
    let next = page["next"].as_str().unwrap().to_owned();
    let told = BASE64_URL_SAFE_NO_PAD.decode(&next).unwrap();
    assert!(!told.windows(6).any(|some| some == b"prod-b"), "{told:?}");
    let page = a.ok(&format!("{path}&page={next}")).await;
    assert_eq!((ids(&page), &page["next"]), (vec!["m-2"], &().into()));
    let forged = BASE64_URL_SAFE_NO_PAD.encode(b"\0\0\0\0\0\x03h-of-prod-b");
    let forged = a.get(&format!("{path}&page={forged}")).await;
    assert_eq!(forged.status, StatusCode::BAD_REQUEST, "{}", forged.text);
}

fn ids(page: &serde_json::Value) -> Vec<&str> {
    let machines = page["machines"].as_array().unwrap().iter();
    machines.map(|machine| machine["id"].as_str().unwrap()).collect()
}

/// Neither where hidden machines are nor how many, however the pages are cut.
#[tokio::test]
async fn pages_do_not_show_where_something_is_hidden() {
    let (stubs, a, ..) = two().await;
    let of = |id: &&str| machine(id, if id.starts_with('h') { "prod-b" } else { "prod-a" });
    let all = ["h-1", "m-1", "m-1h", "m-2", "m-3h", "m-3"];
    let mut all: Vec<_> = all.iter().map(of).collect();
    for (at, cluster) in [(2, "prod-b"), (4, "prod-b")] {
        all[at].machine.as_mut().unwrap().cluster = cluster.to_owned();
    }
    stubs.shard.script.machines.send_replace(all);
    for limit in 1..=4 {
        let path = format!("/api/v1/machines?shard=shard-0&limit={limit}");
        let (mut seen, mut next) = (Vec::new(), Some(String::new()));
        while let Some(token) = next {
            let page = a.ok(&format!("{path}&page={token}")).await;
            let more = page["next"].as_str().map(str::to_owned);
            assert_eq!(ids(&page).len(), limit.min(3 - seen.len()), "{page}");
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            assert_eq!(more.is_some(), seen.len() < 3, "{page}");
            next = more;
        }
        assert_eq!(seen, ["m-1", "m-2", "m-3"]);
    }
    // An id that is hidden, and one that nobody has.
    for (hidden, unknown) in [("h-1", "x-1"), ("h", "x"), ("m-1h", "m-1x")] {
        let ask = async |prefix| {
            let path = format!("/api/v1/machines?shard=shard-0&prefix={prefix}&limit=1");
            let mut page = a.ok(&path).await;
            page["queriedAt"].take();
            page
        };
        assert_eq!(ask(hidden).await, ask(unknown).await, "{hidden}");
    }
}

/// In the shard that is asked, in another, or nowhere.
#[tokio::test]
async fn a_hidden_machine_is_refused_as_one_that_nobody_has() {
    let (stubs, a, b, _) = two().await;
    let other = Shard::start().await;
    let (here, there) = (stubs.shard.addr.to_string(), other.addr.to_string());
    lead(&stubs.coordinator, &[("shard-0", &here), ("shard-1", &there)]);
    other.script.machines.send_replace(vec![machine("m-9", "prod-b")]);
    for shard in ["shard-0", "shard-1"] {
        let refusal = async |id| {
            let refused = a.get(&format!("/api/v1/machines/{shard}/{id}")).await;
            assert_eq!(refused.status, StatusCode::NOT_FOUND, "{shard} {id}: {}", refused.text);
            refused.text.replace(id, "ID")
        };
        assert_eq!(refusal("m-2").await, refusal("gone").await);
        assert_eq!(refusal("m-9").await, refusal("gone").await);
        assert_eq!(b.ok(&format!("/api/v1/machines/{shard}/m-9")).await["shard"], "shard-1");
    }
    // Nor does it show while a shard does not answer.
    other.set(Mood::Failing);
    stubs.shard.script.machines.send_modify(|all| all.push(machine("m-8", "prod-b")));
    for id in ["m-8", "lost"] {
        let unsure = a.get(&format!("/api/v1/machines/shard-0/{id}")).await;
        assert_eq!(unsure.status, StatusCode::BAD_GATEWAY, "{id}: {}", unsure.text);
    }
}

/// A machine has no cluster until it is configured, but may be meant for one.
#[tokio::test]
async fn what_a_machine_without_a_cluster_is_meant_for_is_not_told() {
    let (stubs, a, ..) = two().await;
    let list = "/api/v1/machines?shard=shard-0";
    let one = "/api/v1/machines/shard-0/m-3";
    for (path, at) in [(list, "/machines/1"), (one, "/machine")] {
        let answered = a.get(path).await;
        assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
        for secret in ["team-b", "secret"] {
            assert!(!answered.text.contains(secret), "{secret}: {}", answered.text);
        }
        let machine = answered.body.pointer(at).unwrap();
        assert_eq!((&machine["id"], &machine["cluster"]), (&"m-3".into(), &"".into()));
        assert_eq!(machine["claimedByFingerprint"], "hidden");
        for field in ["Priority", "InterruptionPenaltyDollars", "ReclamationPenaltyDollars"] {
            assert!(machine[format!("assigned{field}")].is_null(), "{machine}");
        }
    }
    // Who may see everything is told.
    let all = Viewed::start(stubs.config()).await;
    assert!(all.get(list).await.text.contains("team-b"));
    assert_eq!(all.ok(one).await["machine"]["assignedPriority"], 77);
}

/// It does not say whose it is.
#[tokio::test]
async fn what_a_shortfall_asks_for_is_not_told() {
    let (stubs, a, ..) = two().await;
    let path = "/api/v1/shard-reports";
    let scoped = a.get(path).await;
    assert!(!scoped.text.contains("team-b"), "{}", scoped.text);
    let short = &scoped.body["reports"][0]["shortfalls"][0];
    assert_eq!((&short["hidden"], &short["escalated"]), (&true.into(), &true.into()), "{short}");
    assert!(short["deficit"].is_null() && short["minUnit"].is_null(), "{short}");
    assert_eq!((&short["requirements"], &short["priority"]), (&json!([]), &100.into()));
    // Who may see everything is told.
    let all = Viewed::start(stubs.config()).await.ok(path).await;
    let short = &all["reports"][0]["shortfalls"][0];
    assert_eq!(
        (&short["hidden"], &short["requirements"][0]["values"][0]),
        (&false.into(), &"team-b".into())
    );
}

#[tokio::test]
async fn of_a_victim_out_of_scope_no_more_is_told_than_that_there_is_one() {
    let (_stubs, a, ..) = two().await;
    let need = "%7B%22aggregateResources%22%3A%7B%22cpu%22%3A%221%22%7D%7D";
    let path = format!("/api/v1/whatif?shard=shard-0&cluster=prod-a&need={need}");
    let victims = a.ok(&path).await["victims"].clone();
    let own = json!({"machineId": "m-of-prod-a", "state": "unspecified", "effectiveCost": 0.5,
        "clusterId": "prod-a", "priority": 77});
    let other = json!({"machineId": "hidden-2", "state": "unspecified", "effectiveCost": null,
        "clusterId": null, "priority": null});
    assert_eq!(victims, json!([own, other]));
}

/// Flags are about work, and that has a cluster.
#[tokio::test]
async fn no_flag_is_raised_for_clusters_out_of_scope() {
    let (stubs, a, b, nobody) = two().await;
    let mut used = machine("m-1", "prod-b");
    let mut idle = machine("m-2", "");
    for (view, kind) in [(&mut used, CapacityType::OnDemand), (&mut idle, CapacityType::Reserved)] {
        let machine = view.machine.as_mut().unwrap();
        machine.capacity_type = kind.into();
        machine.instance_type = "gpu".to_owned();
    }
    idle.machine.as_mut().unwrap().state = MachineState::Idle.into();
    stubs.shard.script.machines.send_replace(vec![used, idle]);
    let flags = async |viewer: &Viewed| {
        let money = viewer.ok("/api/v1/finops/shard?shard=shard-0").await;
        money["redFlags"].as_array().unwrap().len()
    };
    assert_eq!((flags(&a).await, flags(&b).await, flags(&nobody).await), (0, 1, 0));
}

#[tokio::test]
async fn streams_are_scoped_too() {
    let (stubs, a, b, _) = two().await;
    let mut of_a = Reader::open(&a, "decisions", None).await;
    let mut of_b = Reader::open(&b, "decisions", None).await;
    stubs.shard.watched().await;
    for (sequence, cluster) in [(10, "prod-b"), (11, "prod-a"), (12, "prod-b"), (13, "prod-a")] {
        stubs.shard.decide(crate::shard::decision(sequence, cluster));
    }
    let ids = |events: Vec<serde_json::Value>| -> Vec<String> {
        events.iter().map(|event| event["sequence"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(of_a.news("decisions", 2, Duration::from_secs(30)).await), ["11", "13"]);
    assert_eq!(ids(of_b.news("decisions", 2, Duration::from_secs(30)).await), ["10", "12"]);
}

/// What operators of the fleet write, and what goes wrong with machines of nobody.
#[tokio::test]
async fn texts_about_no_cluster_are_not_streamed_to_those_who_see_some() {
    let (stubs, a, ..) = two().await;
    let all = Viewed::start(stubs.config()).await;
    let mut of_a = Reader::open(&a, "decisions", None).await;
    stubs.shard.watched().await;
    let mut of_all = Reader::open(&all, "decisions", None).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while stubs.shard.script.decisions.receiver_count() < 2 {
        assert!(tokio::time::Instant::now() < deadline, "both watch");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stubs.shard.decide(DecisionRecord {
        kind: "SetActuation".to_owned(),
        reason: "prod-b flaps".to_owned(),
        error: "so does team-b".to_owned(),
        ..crate::shard::decision(10, "")
    });
    let told = &of_a.news("decisions", 1, PATIENCE).await[0];
    assert_eq!((&told["reason"], &told["error"]), (&"".into(), &"".into()), "{told}");
    assert_eq!(of_all.news("decisions", 1, PATIENCE).await[0]["reason"], "prod-b flaps");
}

#[tokio::test]
async fn what_is_hidden_does_not_keep_a_viewer_waiting() {
    let (stubs, a, ..) = two().await;
    // It decides for the other cluster without a pause, and never gets to where it said.
    stubs.shard.script.head.send_replace(i64::MAX);
    let decisions = stubs.shard.script.decisions.clone();
    let busy = tokio::spawn(async move {
        for sequence in 10.. {
            let _ = decisions.send(crate::shard::decision(sequence, "prod-b"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let (decisions, savings) =
        ("/api/v1/decisions?shard=shard-0", "/api/v1/finops/savings?shard=shard-0");
    let both = async { tokio::join!(a.ok(decisions), a.ok(savings)) };
    let (decisions, savings) = tokio::time::timeout(PATIENCE, both).await.expect("answers");
    assert_eq!((&decisions["more"], &savings["gap"]), (&true.into(), &true.into()));
    assert!(!decisions.to_string().contains("prod-b") && !savings.to_string().contains("prod-b"));
    busy.abort();
}
