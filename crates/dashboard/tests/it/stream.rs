//! The live stream.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt as _;
use http::{Request, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    rig::{Mood, PATIENCE, Stubs, Viewed, lead},
    shard::{Shard, decision},
};

/// Longer than anything is watched for nobody.
const LONG: Duration = Duration::from_secs(60);

/// One event of a stream.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// Somebody who reads a stream.
pub(crate) struct Reader {
    body: BodyDataStream,
    rest: String,
}

impl Reader {
    pub(crate) async fn open(viewed: &Viewed, topics: &str, last: Option<&str>) -> Self {
        let mut request = Request::get(format!("/api/v1/stream?topics={topics}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = viewed.response(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        Self { body: response.into_body().into_data_stream(), rest: String::new() }
    }

    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = frame.lines();
                    lines.filter_map(|line| line.strip_prefix(name)).next().map(str::to_owned)
                };
                let event = Event {
                    name: field("event: ").unwrap(),
                    id: field("id: "),
                    data: serde_json::from_str(&field("data: ").unwrap()).unwrap(),
                };
                self.rest = rest.to_owned();
                return Some(event);
            }
            let chunk = timeout(PATIENCE, self.body.next()).await.expect("a frame")?;
            self.rest.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }

    /// The next event of this name.
    pub(crate) async fn next_of(&mut self, name: &str) -> Event {
        // Hearts beat on where nothing else comes.
        let reading = async {
            loop {
                let event = self.next().await.expect("the stream goes on");
                if event.name == name {
                    return event;
                }
            }
        };
        timeout(PATIENCE, reading).await.expect("an event of this name")
    }

    /// What the next events of a topic say.
    pub(crate) async fn news(&mut self, name: &str, count: usize, within: Duration) -> Vec<Value> {
        let mut news = Vec::new();
        let reading = async {
            while news.len() < count {
                news.push(self.next_of(name).await.data);
            }
        };
        timeout(within, reading).await.expect("news in time");
        news
    }
}

#[tokio::test]
async fn every_topic_brings_its_news() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let mut reader = Reader::open(&viewed, "summary,decisions,topology,needs:shard-0", None).await;
    let first = reader.next().await.unwrap();
    assert_eq!((first.name.as_str(), first.id), ("heartbeat", None));
    let mut seen = std::collections::BTreeMap::new();
    while seen.len() < 3 {
        let event = reader.next().await.unwrap();
        if !["heartbeat", "source"].contains(&event.name.as_str()) {
            assert!(event.id.is_some(), "{event:?}");
            seen.insert(event.name, event.data);
        }
    }
    assert_eq!(
        (&seen["summary"]["cycle"], &seen["summary"]["shard"]),
        (&7.into(), &"shard-0".into())
    );
    assert_eq!(seen["needs:shard-0"]["needs"], 2);
    assert_eq!(seen["topology"]["shards"][0]["shardId"], "shard-0");
    stubs.shard.watched().await;
    stubs.shard.decide(decision(10, "prod-a"));
    assert_eq!(reader.next_of("decisions").await.data["sequence"], "10");
}

#[tokio::test]
async fn one_who_comes_back_misses_nothing() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let mut reader = Reader::open(&viewed, "decisions", None).await;
    stubs.shard.watched().await;
    for sequence in 10..13 {
        stubs.shard.decide(decision(sequence, "prod-a"));
    }
    let first = reader.next_of("decisions").await;
    let last = loop {
        let event = reader.next_of("decisions").await;
        if event.data["sequence"] == "12" {
            break event;
        }
    };
    drop(reader);
    let mut again = Reader::open(&viewed, "decisions", first.id.as_deref()).await;
    let missed = again.news("decisions", 2, PATIENCE).await;
    assert_eq!((&missed[0]["sequence"], &missed[1]["sequence"]), (&"11".into(), &"12".into()));
    // Two viewers, one watch.
    let _also = Reader::open(&viewed, "decisions", last.id.as_deref()).await;
    assert_eq!(stubs.shard.script.decisions.receiver_count(), 1);
    let mut elsewhere = Reader::open(&viewed, "decisions", Some("other.3")).await;
    assert_eq!(elsewhere.next().await.unwrap().name, "heartbeat");
    assert_eq!(elsewhere.next().await.unwrap().name, "reset");
}

/// Others look at something else meanwhile, or nobody at anything.
#[tokio::test]
async fn what_is_decided_while_a_screen_is_hidden_is_told_when_it_is_back() {
    for others in [None, Some("summary")] {
        let stubs = Stubs::start().await;
        let viewed = Viewed::start(stubs.config()).await;
        let mut reader = Reader::open(&viewed, "decisions", None).await;
        stubs.shard.watched().await;
        stubs.shard.decide(decision(10, "prod-a"));
        let seen = reader.next_of("decisions").await;
        let _other = match others {
            Some(topics) => Some(Reader::open(&viewed, topics, None).await),
            None => None,
        };
        drop(reader);
        // What a newcomer wants is watched once it was noticed that the other left.
        Reader::open(&viewed, "topology", None).await.next_of("topology").await;
        stubs.shard.decide(decision(11, "prod-a"));
        let mut again = Reader::open(&viewed, "decisions", seen.id.as_deref()).await;
        assert_eq!(again.next().await.unwrap().name, "heartbeat");
        assert_ne!(again.next().await.unwrap().name, "reset", "{others:?}");
        let mut again = Reader::open(&viewed, "decisions", seen.id.as_deref()).await;
        assert_eq!(again.next_of("decisions").await.data["sequence"], "11", "{others:?}");
    }
}

#[tokio::test]
async fn who_was_away_from_decisions_for_longer_is_told_so() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let mut other = Reader::open(&viewed, "summary", None).await;
    let mut reader = Reader::open(&viewed, "summary,decisions", None).await;
    stubs.shard.watched().await;
    stubs.shard.decide(decision(10, "prod-a"));
    let seen = reader.next_of("decisions").await;
    drop(reader);
    // Time jumps whenever everybody waits.
    tokio::time::pause();
    stubs.shard.unwatched().await;
    tokio::time::resume();
    stubs.shard.decide(decision(11, "prod-a"));
    stubs.shard.set_cycle(8);
    let meanwhile = loop {
        let summary = other.next_of("summary").await;
        if summary.data["cycle"] == 8 {
            break summary;
        }
    };
    // A place in the stream of other topics is none in that of decisions.
    for seen in [seen, meanwhile] {
        let mut again = Reader::open(&viewed, "summary,decisions", seen.id.as_deref()).await;
        assert_eq!(again.next().await.unwrap().name, "heartbeat");
        assert_eq!(again.next().await.unwrap().name, "reset", "{seen:?}");
        // They may remember that decisions failed: the new watch says how it is.
        while again.next_of("source").await.data["topic"] != "decisions" {}
    }
}

#[tokio::test]
async fn a_shard_that_fails_is_told_and_so_is_its_return() {
    let stubs = Stubs::start().await;
    stubs.shard.set(Mood::Failing);
    let viewed = Viewed::start(stubs.config()).await;
    let mut reader = Reader::open(&viewed, "summary", None).await;
    let failed = reader.next_of("source").await;
    assert_eq!(
        (&failed.data["state"], &failed.data["shard"]),
        (&"failed".into(), &"shard-0".into())
    );
    assert!(failed.data["error"].as_str().unwrap().contains("broken"));
    // Who comes later learns it as well.
    let mut late = Reader::open(&viewed, "summary", None).await;
    assert_eq!(late.next_of("source").await.data["state"], "failed");
    // So does who comes when another's topic has ended.
    tokio::time::pause();
    let mut other = Reader::open(&viewed, "decisions", None).await;
    assert_eq!(other.next_of("source").await.data["topic"], "decisions");
    drop(other);
    tokio::time::sleep(LONG).await;
    tokio::time::resume();
    let mut later = Reader::open(&viewed, "summary", None).await;
    assert_eq!(later.next_of("source").await.data["state"], "failed");
    stubs.shard.set(Mood::Good);
    assert_eq!(reader.next_of("source").await.data["state"], "ok");
    assert_eq!(reader.next_of("summary").await.data["cycle"], 7);
}

#[tokio::test]
async fn decisions_are_followed_from_where_the_shard_says_that_its_log_ends() {
    let stubs = Stubs::start().await;
    // It decides once more before it is followed.
    stubs.shard.script.head.send_replace(1);
    let viewed = Viewed::start(stubs.config()).await;
    let mut reader = Reader::open(&viewed, "decisions", None).await;
    assert_eq!(reader.news("decisions", 1, PATIENCE).await[0]["sequence"], "2");
}

/// Notices of needs come from the same watch as summaries.
#[tokio::test]
async fn who_follows_needs_alone_is_told_as_well() {
    let stubs = Stubs::start().await;
    stubs.shard.set(Mood::Failing);
    let viewed = Viewed::start(stubs.config()).await;
    let mut reader = Reader::open(&viewed, "needs:shard-0", None).await;
    let failed = &reader.news("source", 1, PATIENCE).await[0];
    assert_eq!(
        (&failed["topic"], &failed["state"]),
        (&"needs:shard-0".into(), &"failed".into()),
        "{failed}"
    );
    stubs.shard.set(Mood::Good);
    assert_eq!(reader.next_of("source").await.data["state"], "ok");
    assert_eq!(reader.next_of("needs:shard-0").await.data["cycle"], 7);
}

/// What a stream that is open says when nothing new comes from one shard.
#[tokio::test(start_paused = true)]
async fn a_shard_that_falls_silent_silences_nobody_else() {
    let stubs = Stubs::start().await;
    let second = Shard::start().await;
    let shards = [("shard-0", &stubs.shard), ("shard-1", &second)];
    let shards = shards.map(|(id, shard)| (id, shard.addr.to_string()));
    lead(&stubs.coordinator, &shards.each_ref().map(|(id, addr)| (*id, addr.as_str())));
    let viewed = Viewed::start(stubs.config()).await;
    let mut reader = Reader::open(&viewed, "summary", None).await;
    let mut heard: Vec<Value> = reader.news("summary", 2, PATIENCE).await;
    heard.sort_by_key(|summary| summary["shard"].to_string());
    assert_eq!((&heard[0]["shard"], &heard[1]["shard"]), (&"shard-0".into(), &"shard-1".into()));
    for _ in 0..3 {
        reader.next_of("heartbeat").await;
    }
    second.set_cycle(8);
    let summary = &reader.news("summary", 1, PATIENCE).await[0];
    assert_eq!((&summary["shard"], &summary["cycle"]), (&"shard-1".into(), &8.into()));
}

#[tokio::test]
async fn who_comes_when_all_places_are_taken_is_told_so() {
    const PLACES: usize = 512;
    const PATH: &str = "/api/v1/stream?topics=topology";
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let mut readers = Vec::new();
    for _ in 0..PLACES {
        readers.push(Reader::open(&viewed, "topology", None).await);
    }
    let refused = viewed.get(PATH).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    // Not a source that is missing, but somebody who should ask without a stream.
    assert!(refused.body["source"].is_null(), "{}", refused.text);
    assert!(refused.text.contains("512 viewers"), "{}", refused.text);
    readers.pop();
    assert_eq!(viewed.get(PATH).await.status, StatusCode::OK);
}

#[tokio::test]
async fn hearts_beat_every_ten_seconds() {
    let stubs = Stubs::start().await;
    let viewed = Viewed::start(stubs.config()).await;
    let mut reader = Reader::open(&viewed, "decisions", None).await;
    reader.next_of("heartbeat").await;
    // Time jumps whenever everybody waits.
    tokio::time::pause();
    reader.next_of("heartbeat").await;
    let begun = tokio::time::Instant::now();
    for _ in 0..2 {
        reader.next_of("heartbeat").await;
    }
    assert_eq!(begun.elapsed().as_secs_f64().round(), 20.0);
}
