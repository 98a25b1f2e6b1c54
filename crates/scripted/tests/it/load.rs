//! A small load against the fake.

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_scripted::{
    Error,
    load::{self, LoadOptions},
};
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{
    BootstrapRequest, ReclaimInstruction, operator_message::Payload as Up,
    shard_message::Payload as Down,
};

use crate::fake_shard::{Acks, FakeShard, mtls};

/// A rate of which every session gets its share in that time.
fn options(addr: &str) -> LoadOptions {
    let mut options = LoadOptions::new(addr);
    options.sessions = 30;
    options.sessions_per_connection = 7;
    options.roll_ups_per_second = 300.0;
    options.duration = Duration::from_millis(400);
    options.needs_per_roll_up = 5;
    options
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_roll_up_is_sent_answered_and_measured() {
    let shard = FakeShard::start().await;
    let mut told = 0;
    let figures = load::run(options(&shard.addr), |_| told += 1).await.unwrap();
    assert_eq!((figures.sessions_opened, figures.sessions_alive), (30, 30));
    assert_eq!(figures.sent, 120, "{figures:?}");
    assert_eq!((figures.accepted, figures.superseded, figures.unanswered), (120, 0, 0));
    assert_eq!((figures.latency.count, figures.hello.count, figures.behind.count), (120, 30, 120));
    assert!(figures.latency.p50 <= figures.latency.max && !figures.latency.max.is_zero());
    assert!(figures.acks_per_second > 0.0 && told > 0);
    assert!(figures.errors.is_empty(), "{figures:?}");

    let heard = shard.heard();
    let mut by_cluster = std::collections::BTreeMap::<_, Vec<_>>::new();
    for (_, frame) in &heard.frames {
        if let Up::Rollup(roll_up) = frame {
            assert_eq!(roll_up.needs.len(), 5);
            by_cluster.entry(&roll_up.cluster_id).or_default().push(roll_up.timestamp_unix_nanos);
        }
    }
    assert_eq!(by_cluster.len(), 30);
    assert!(by_cluster.values().all(|times| times.len() == 4 && times.is_sorted()));
    assert!(heard.ends.values().all(Result::is_ok), "half-closed: {:?}", heard.ends);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_holds_and_silence_are_told_apart() {
    let shard = FakeShard::start().await;
    let mut short = options(&shard.addr);
    short.patience = Duration::from_millis(500);
    short.sessions = 3;
    short.duration = Duration::from_millis(100);
    for (acks, counted) in [
        (Acks::EverySecond, [15, 15, 0, 0, 0]),
        (Acks::Hold, [0, 0, 30, 0, 0]),
        (Acks::Reject, [0, 0, 0, 30, 0]),
        (Acks::None, [0, 0, 0, 0, 30]),
    ] {
        shard.set_acks(acks);
        let figures = load::run(short.clone(), |_| {}).await.unwrap();
        let answered = [figures.accepted, figures.superseded, figures.held];
        let others = [figures.rejected, figures.unanswered];
        assert_eq!([&answered[..], &others].concat(), counted, "{figures:?}");
        let refused = acks == Acks::Reject;
        assert_eq!(figures.first_error.is_some_and(|text| text == "needs[0]: no"), refused);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_answer_what_they_are_asked() {
    let shard = FakeShard::start().await;
    let mut one = options(&shard.addr);
    one.sessions = 1;
    one.drain = Duration::from_millis(20);
    let asking = async {
        shard.until(|heard| !heard.frames.is_empty()).await;
        let request = BootstrapRequest { request_id: "r".to_owned(), ..Default::default() };
        shard.send(Down::BootstrapRequest(request)).await;
        shard
            .send(Down::ReclaimInstruction(ReclaimInstruction {
                instruction_id: "i".to_owned(),
                nodes: vec!["a".to_owned(), "b".to_owned()],
                ..Default::default()
            }))
            .await;
    };
    let (figures, ()) = tokio::join!(load::run(one, |_| {}), asking);
    let figures = figures.unwrap();
    assert_eq!((figures.bootstraps, figures.reclaims), (1, 1));
    let heard = shard.heard();
    assert_eq!(heard.reclaim_acks(), [(1, 2, 0, false), (1, 2, 2, true)]);
    assert!(heard.frames.iter().any(|(_, frame)| {
        matches!(frame, Up::BootstrapResponse(blob) if blob.request_id == "r" && !blob.user_data.is_empty())
    }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_opened_or_ends_too_soon_is_counted_by_code() {
    let figures = load::run(options("127.0.0.1:1"), |_| {}).await.unwrap();
    assert_eq!((figures.sessions_opened, figures.sent), (0, 0));
    assert_eq!(figures.errors.get("UNAVAILABLE"), Some(&30));

    let shard = FakeShard::start().await;
    let mut one = options(&shard.addr);
    one.sessions = 1;
    let ending = async {
        shard
            .until(|heard| heard.frames.iter().any(|(_, frame)| matches!(frame, Up::Rollup(_))))
            .await;
        shard.end_with(tonic::Status::aborted("replaced")).await;
    };
    let (figures, ()) = tokio::join!(load::run(one, |_| {}), ending);
    let figures = figures.unwrap();
    assert_eq!((figures.sessions_opened, figures.sessions_alive), (1, 0));
    assert_eq!(figures.errors.get("ABORTED"), Some(&1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_mtls_each_session_has_its_own_connection_and_identity() {
    let pki = Pki::new().unwrap();
    let own = pki.material(&["bigfleet://shard/s"]).unwrap();
    let shard = FakeShard::start_with(mtls(&own)).await;
    let materials: Vec<_> = (0..3)
        .map(|number| pki.material(&[&format!("bigfleet://cluster/load-{number:05}")]).unwrap())
        .collect();
    let identities: Vec<Security> = materials.iter().map(mtls).collect();
    let mut options = options(&shard.addr).security(move |cluster| {
        identities[cluster.trim_start_matches("load-").parse::<usize>().unwrap()].clone()
    });
    options.sessions = 3;
    let shared = load::run(options.clone(), |_| {}).await.unwrap_err();
    assert!(matches!(shared, Error::Option { option: "sessions_per_connection", .. }), "{shared}");
    options.sessions_per_connection = 1;
    let figures = load::run(options, |_| {}).await.unwrap();
    assert_eq!((figures.sessions_opened, figures.accepted), (3, 120), "{figures:?}");
}

#[tokio::test]
async fn options_that_cannot_work_are_refused() {
    let wrong: [fn(&mut LoadOptions); 4] = [
        |options| options.sessions = 0,
        |options| options.sessions_per_connection = 201,
        |options| options.roll_ups_per_second = f64::NAN,
        |options| options.dials = 0,
    ];
    for break_it in wrong {
        let mut options = options("127.0.0.1:1");
        break_it(&mut options);
        assert!(matches!(load::run(options, |_| {}).await, Err(Error::Option { .. })));
    }
}

/// `cargo test -p bigfleet-scripted --test it ten_thousand -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes both cores for half a minute"]
async fn ten_thousand_sessions() {
    let shard = FakeShard::start().await;
    shard.forget();
    let mut options = LoadOptions::new(&shard.addr);
    options.sessions = 10_000;
    options.roll_ups_per_second = 5_000.0;
    let tell = |progress| println!("{progress:?}");
    let figures = load::run(options, tell).await.unwrap();
    println!("{figures:#?}");
    assert_eq!((figures.sessions_alive, figures.sent, figures.unanswered), (10_000, 50_000, 0));
}
