//! The demo for visitors.

use serde_json::Value;

use crate::rig::{Answer, Demo, PATIENCE, call};
use bigfleet_testkit::process::until_or;

async fn ask(demo: &Demo, method: &str, path: &str, secret: Option<&str>) -> Answer {
    let bearer = secret.map(|secret| format!("Authorization: Bearer {secret}"));
    let mut headers = vec!["Content-Type: application/json"];
    headers.extend(bearer.as_deref());
    call(&demo.addr, method, path, &headers, "").await.expect("an answer")
}

/// A session, as soon as a fleet is warm.
async fn session(demo: &mut Demo) -> Value {
    until_or(&|| "a session".to_owned(), PATIENCE, &mut async || {
        assert!(demo.process.is_running(), "{}", demo.process.tail());
        let answer = call(&demo.addr, "POST", "/api/session", &[], "").await?;
        match answer.status {
            201 => Some(answer.json()),
            status => {
                assert_eq!(status, 503, "{answer:?}");
                assert!(answer.head.contains("retry-after: "), "{answer:?}");
                None
            }
        }
    })
    .await
}

#[tokio::test]
async fn visitors_have_a_fleet_each_and_nothing_without_their_secret() {
    let mut demo = Demo::start(&["--hosted"]);
    let first = session(&mut demo).await;
    let secret = first["session"].as_str().unwrap().to_owned();
    for (path, secret) in [("/api/state", None), ("/api/state", Some("00")), ("/api/stream", None)]
    {
        assert_eq!(ask(&demo, "GET", path, secret).await.status, 401, "{path} {secret:?}");
    }
    assert_eq!(ask(&demo, "POST", "/api/reset", None).await.status, 401);
    assert_eq!(ask(&demo, "GET", "/", None).await.status, 200, "the page is for everybody");
    let state = ask(&demo, "GET", "/api/state", Some(&secret)).await.json();
    assert_eq!(state["demo"]["hosted"], true);
    let board = state["demo"]["dashboardUrl"].as_str().unwrap().to_owned();
    let page = ask(&demo, "GET", &board, None).await;
    assert!(page.status == 200 && page.text.contains(&board), "{page:?}");
    let shards = ask(&demo, "GET", &format!("{board}api/v1/shards"), None).await;
    assert!(shards.status == 200 && shards.text.contains("shard-1"), "{shards:?}");
    assert_eq!(ask(&demo, "GET", "/dashboard/00/", None).await.status, 404);
    let ends = &state["demo"]["session"];
    assert_eq!(ends["endsAtUnixMs"], first["endsAtUnixMs"]);
    assert!(ends["idleEndsAtUnixMs"].as_i64() < ends["endsAtUnixMs"].as_i64(), "{ends}");
    assert_eq!(ask(&demo, "POST", "/api/heartbeat", Some(&secret)).await.status, 204);

    let second = session(&mut demo).await;
    let other = second["session"].as_str().unwrap().to_owned();
    assert_ne!(secret, other);
    let pids = |state: &Value| {
        let all = state["coordinators"].as_array().unwrap().clone();
        all.iter().map(|it| it["pid"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let theirs = ask(&demo, "GET", "/api/state", Some(&other)).await.json();
    assert_ne!(pids(&state), pids(&theirs), "a fleet each");
    assert_ne!(theirs["demo"]["dashboardUrl"], board.as_str(), "and a dashboard each");

    demo.process.signal("TERM").await;
    assert!(demo.process.ended().await.success(), "{}", demo.process.tail());
    demo.left_nothing().await;
}
