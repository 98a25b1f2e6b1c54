//! Decisions are read to where the shard's log ends, however slowly they come.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Stubs, Viewed};

async fn answer(stubs: &Stubs, query: &str) -> Value {
    let viewed = Viewed::start(stubs.config()).await;
    viewed.ok(&format!("/api/v1/decisions?shard=shard-0{query}")).await
}

/// Sequence numbers of an answer.
fn told(answer: &Value) -> Vec<&str> {
    let decisions = answer["decisions"].as_array().unwrap();
    decisions.iter().map(|one| one["sequence"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn silence_is_not_the_end() {
    let stubs = Stubs::start().await;
    stubs.shard.script.pause.send_replace(Duration::from_millis(400));
    for query in ["", "&after=-1"] {
        let all = answer(&stubs, query).await;
        assert_eq!((told(&all), &all["more"]), (vec!["1", "2"], &json!(false)), "{query}");
        // While the shard passes over what does not match, it says nothing.
        let some = answer(&stubs, &format!("{query}&cluster=prod-b")).await;
        assert_eq!((told(&some), &some["more"]), (vec!["2"], &json!(false)), "{query}");
    }
    // One that does not say where its log ends may have more to say.
    stubs.shard.script.head.send_replace(0);
    assert_eq!(answer(&stubs, "&cluster=prod-b").await["more"], true);
}

#[tokio::test]
async fn filters_are_those_of_the_shard() {
    let stubs = Stubs::start().await;
    for (query, sequences) in [
        ("&kind=Bootstrap", vec!["1", "2"]),
        ("&kind=Preempt,Bootstrap&cluster=prod-a", vec!["1"]),
        ("&kind=Preempt", vec![]),
        ("&machine=m-1&outcome=decided", vec!["1", "2"]),
        ("&machine=m-2", vec![]),
        ("&outcome=success", vec![]),
        ("&minPriority=1", vec![]),
        ("&limit=1", vec!["2"]),
        ("&limit=1&kind=Bootstrap", vec!["2"]),
    ] {
        let newest = answer(&stubs, query).await;
        assert_eq!((told(&newest), &newest["more"]), (sequences, &json!(false)), "{query}");
    }
}

#[tokio::test]
async fn pages_end_where_the_log_does() {
    let stubs = Stubs::start().await;
    let page = |query: &str| {
        let query = format!("{query}&limit=1");
        let stubs = &stubs;
        async move {
            let page = answer(stubs, &query).await;
            (told(&page).join(","), page["next"].clone(), page["more"].clone())
        }
    };
    assert_eq!(page("&after=-1").await, ("1".to_owned(), json!("1"), json!(true)));
    assert_eq!(page("&after=1").await, ("2".to_owned(), json!("2"), json!(false)));
    assert_eq!(page("&after=2").await, (String::new(), json!("2"), json!(false)));
    let filtered = page("&after=-1&kind=Bootstrap").await;
    assert_eq!(filtered, ("1".to_owned(), json!("1"), json!(true)));
    // What did not match was looked at: whoever asks again goes on behind it.
    let nothing = page("&after=-1&kind=Preempt").await;
    assert_eq!(nothing, (String::new(), json!("2"), json!(false)));
}
