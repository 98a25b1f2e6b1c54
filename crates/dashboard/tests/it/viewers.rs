//! However many look, a shard is asked by one (experience chapter §2: a hundred viewers cost it at
//! most 2 % of its cycle).

use futures_util::future::join_all;

use http::StatusCode;

use crate::{
    rig::{Mood, Stubs, Viewed},
    shard::decision,
    stream::Reader,
};

/// What a shard is asked while so many viewers follow it through a cycle, each with every topic
/// and, as the app does, all needs once they were judged anew.
async fn asked(viewers: usize) -> Vec<&'static str> {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let topics = "summary,decisions,topology,needs:shard-0";
    let readers = (0..viewers).map(|_| Reader::open(&viewed, topics, None));
    let mut readers = join_all(readers).await;
    stubs.shard.watched().await;
    stubs.shard.set_cycle(8);
    stubs.shard.decide(decision(10, "prod-a"));
    join_all(readers.iter_mut().map(
        async |reader| {
            while reader.next_of("summary").await.data["cycle"] != 8 {}
        },
    ))
    .await;
    join_all((0..viewers).map(async |_| {
        assert_eq!(viewed.ok("/api/v1/needs?shard=shard-0").await["cycle"], 8);
        viewed.ok("/api/v1/machines?shard=shard-0").await;
        viewed.ok("/api/v1/sessions?shard=shard-0").await;
    }))
    .await;
    let metrics = viewed.get("/metrics").await.text;
    assert!(metrics.contains(&format!("bigfleet_web_dashboard_stream_viewers {viewers}\n")));
    let mut asked = stubs.shard.script.asked.borrow().clone();
    asked.sort_unstable();
    asked
}

#[tokio::test]
async fn a_hundred_viewers_are_one_to_a_shard() {
    let by_one = asked(1).await;
    let once =
        ["inspect_needs", "list_machines", "list_sessions", "watch_decisions", "watch_summary"];
    assert_eq!(by_one, once);
    assert_eq!(asked(100).await, by_one);
}

#[tokio::test]
async fn fifty_who_ask_the_same_are_one_to_a_shard() {
    const ONCE: [&str; 2] = ["watch_decisions", "watch_summary"];
    let cases: [(&str, &[&str]); 4] = [
        ("/decisions?shard=shard-0", &ONCE),
        ("/decisions?shard=shard-0&after=-1&kind=Preempt", &ONCE),
        ("/finops/savings?shard=shard-0", &ONCE),
        (
            "/whatif?shard=shard-0&cluster=prod-a&need=\
             %7B%22aggregateResources%22%3A%7B%22cpu%22%3A%221%22%7D%7D",
            &["what_if"],
        ),
    ];
    for (path, once) in cases {
        let stubs = Stubs::start().await;
        let viewed = Viewed::start(stubs.config()).await;
        let path = format!("/api/v1{path}");
        join_all((0..50).map(|_| viewed.ok(&path))).await;
        let mut asked = stubs.shard.script.asked.borrow().clone();
        asked.sort_unstable();
        assert_eq!(asked, once, "{path}");
    }
}

/// With time that jumps whenever everybody waits.
#[tokio::test(start_paused = true)]
async fn those_who_ask_something_else_each_take_turns() {
    // Whoever gave up at the last moment may have made room for somebody.
    for (path, call, most) in [
        ("/machines?shard=shard-0&prefix=m", "list_machines", 32),
        ("/sessions?shard=shard-0&cluster=c", "list_sessions", 32),
        ("/decisions?shard=shard-0&kind=Preempt&after=1", "watch_summary", 12),
    ] {
        let stubs = Stubs::start().await;
        stubs.shard.set(Mood::Hanging);
        let viewed = Viewed::start(stubs.config()).await;
        let path = format!("/api/v1{path}");
        let asking = join_all((0..40).map(async |number| {
            let answered = viewed.get(&format!("{path}{number}")).await;
            assert_eq!(answered.status, StatusCode::BAD_GATEWAY, "{}", answered.text);
        }));
        asking.await;
        let asked = stubs.shard.script.asked.borrow();
        let asked = asked.iter().filter(|asked| **asked == call).count();
        assert!((1..=most).contains(&asked), "{path}: {asked}");
    }
}
