//! What a real shard tells.

use std::fs;

use bigfleet_net::tls::Security;
use bigfleet_wire::v1alpha1::CapacityNeed;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::rig::{Ctl, PATIENCE, Shard, leading};

fn need(priority: i32, cpu: &str, unit: &str) -> CapacityNeed {
    CapacityNeed {
        aggregate_resources: [("cpu".to_owned(), cpu.to_owned())].into(),
        min_unit: [("cpu".to_owned(), unit.to_owned())].into(),
        priority,
        interruption_penalty_bucket: 1,
        reclamation_penalty_bucket: 1,
        ..Default::default()
    }
}

fn sequence(line: &str) -> i64 {
    serde_json::from_str::<serde_json::Value>(line).unwrap()["sequence"].as_i64().unwrap()
}

async fn until(ctl: &Ctl, args: &[&str], what: &str) -> String {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let done = ctl.run(args).await;
        if done.code == 0 && done.out.contains(what) {
            return done.out;
        }
        assert!(tokio::time::Instant::now() < deadline, "no {what:?}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn needs_machines_sessions_and_decisions() {
    let shard = Shard::start("s-1", Security::Plaintext).await;
    let coordinator = leading(&Security::Plaintext, &[("s-1", &shard.addr)]).await;
    let _cluster =
        shard.cluster("c-1", vec![need(1000, "1", "1"), need(10, "9000000", "8000000")]).await;
    let ctl = Ctl::to(&[coordinator.addr()]);

    let needs = until(&ctl, &["needs"], "satisfied").await;
    assert!(needs.starts_with("cycle "), "{needs}");
    assert!(needs.contains("\nc-1      10        NO_MATCHING_SUPPLY  0"), "{needs}");
    let unmet = ctl.run(&["needs", "--unmet", "-o", "json", "--shard", "s-1"]).await.ok();
    let unmet: serde_json::Value = serde_json::from_str(&unmet).unwrap();
    assert_eq!(unmet.as_array().unwrap().len(), 1, "{unmet}");
    assert_eq!(unmet[0]["reason"], "NO_MATCHING_SUPPLY");

    let why = ctl.run(&["explain", "--cluster", "c-1"]).await.ok();
    assert!(why.starts_with("UNMET: NO_MATCHING_SUPPLY  need of cluster c-1\n"), "{why}");
    assert!(why.contains("raise the provider's quota") && why.contains("supply funnel"), "{why}");
    let how = ctl.run(&["explain", "--cluster", "c-1", "--fingerprint", "p=1000|"]).await.ok();
    assert!(how.starts_with("SATISFIED"), "{how}");
    let error =
        ctl.run(&["explain", "--cluster", "c-1", "--fingerprint", "nothing"]).await.failed(1);
    assert!(error.contains("no such need"), "{error}");

    let machines = until(&ctl, &["machines", "--cluster", "c-1"], "CONFIGURED").await;
    let id = machines.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let one = ctl.run(&["machines", &id]).await.ok();
    assert!(one.contains("TIME") && one.contains("CAUSE") && one.contains("CONFIGURED"), "{one}");
    ctl.run(&["machines", "no-such-machine"]).await.failed(1);
    let few = ctl.run(&["machines", "--limit", "2", "-o", "json"]).await;
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&few.out).unwrap().as_array().unwrap().len(),
        2
    );
    assert!(few.err.contains("2 of 12 machines"), "{few:?}");

    let sessions = ctl.run(&["sessions"]).await.ok();
    assert!(sessions.contains("\nc-1      connected  "), "{sessions}");

    let decisions = ctl.run(&["decisions", "--tail", "0"]).await.ok();
    assert!(
        decisions.contains("  Bootstrap  ") && decisions.contains("  decided  "),
        "{decisions}"
    );
    let json =
        ctl.run(&["decisions", "--kind", "Bootstrap", "--tail", "1", "-o", "json"]).await.ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json.as_array().unwrap().len(), &json[0]["kind"]), (1, &"Bootstrap".into()));

    // Followed, a decision is told as it is made.
    let mut child = ctl.command(&["decisions", "-f", "--tail", "1", "-o", "json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    let known = sequence(&first);
    let _more = shard.cluster("c-2", vec![need(1000, "1", "1")]).await;
    let next = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(sequence(&next) > known, "{next}");
    child.kill().await.unwrap();

    let top = ctl.run(&["top", "--once"]).await.ok();
    assert!(top.contains("1 shard  12 machines") && top.contains("active"), "{top}");
    shard.stop().await;
    let nobody = ctl.run(&["top", "--once"]).await;
    assert!(nobody.out.contains("0 of 1 shards answer  — machines"), "{nobody:?}");
    assert!(nobody.code == 1 && nobody.err.contains("doctor"), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_if() {
    let shard = Shard::start("s-1", Security::Plaintext).await;
    let _cluster = shard.cluster("c-1", vec![]).await;
    let ctl = Ctl::bare();
    let at = ["--shard-addr", shard.addr.as_str()];
    until(&ctl, &[&["needs"], &at[..]].concat(), "cycle ").await;
    fs::write(
        ctl.path("need.yaml"),
        "aggregateResources: {cpu: 1}\nminUnit: {cpu: 1}\npriority: 100\n",
    )
    .unwrap();
    let file = ctl.path("need.yaml");
    let asked = [&["whatif", "-f", file.to_str().unwrap()], &at[..]].concat();
    let fits = until(&ctl, &asked, "would be").await;
    assert!(
        fits.starts_with("would be SATISFIED") && fits.contains("\ntakes 1 machines\nMACHINE"),
        "{fits}"
    );
    let input = "aggregateResources: {cpu: 9000000}\nminUnit: {cpu: 9000000}\n";
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let lacks = loop {
        // One a second for each identity.
        let done =
            ctl.run_with(&[&["whatif", "-f", "-", "-o", "json"], &at[..]].concat(), input).await;
        if done.code == 0 {
            break done.out;
        }
        assert!(done.err.contains("RESOURCE_EXHAUSTED"), "{done:?}");
        assert!(tokio::time::Instant::now() < deadline);
    };
    assert!(lacks.contains("\"reason\": \"NO_MATCHING_SUPPLY\""), "{lacks}");
    fs::write(&file, "aggregateResources: {cpu: 1}\ncount: 2\n").unwrap();
    let error = ctl.run(&asked).await.failed(1);
    assert!(error.contains("need.yaml") && error.contains("line 2"), "{error}");
    shard.stop().await;
}

/// Whoever asks about a cluster need not know which shard serves it.
#[tokio::test(flavor = "multi_thread")]
async fn the_shard_of_a_cluster_is_found() {
    let (one, two) = (
        Shard::start("s-1", Security::Plaintext).await,
        Shard::start("s-2", Security::Plaintext).await,
    );
    let shards = [("s-1", &*one.addr), ("s-2", &*two.addr), ("s-3", "127.0.0.1:1")];
    let coordinator = leading(&Security::Plaintext, &shards).await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    let _first = one.cluster("c-1", vec![need(1000, "1", "1")]).await;
    let _second = two.cluster("c-2", vec![need(10, "9000000", "8000000")]).await;

    until(&ctl, &["needs", "--cluster", "c-1"], "c-1 ").await;
    let why = until(&ctl, &["explain", "--cluster", "c-2"], "UNMET").await;
    assert!(why.contains("need of cluster c-2"), "{why}");
    let error = ctl.run(&["explain", "--cluster", "c-3"]).await.failed(1);
    assert!(error.contains("none of 3 shards has needs of c-3"), "{error}");
    assert!(error.contains("shard s-3 does not answer"), "{error}");
    ctl.run(&["needs"]).await.failed(2);
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_shard_must_be_named_where_there_are_several() {
    let coordinator =
        leading(&Security::Plaintext, &[("s-1", "127.0.0.1:1"), ("s-2", "127.0.0.1:1")]).await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    let error = ctl.run(&["needs"]).await.failed(2);
    assert!(error.contains("s-1, s-2"), "{error}");
    let error = ctl.run(&["explain", "--cluster", "c-1"]).await.failed(1);
    let silent = "shard s-2 does not answer at 127.0.0.1:1";
    assert!(error.contains("none of 2 shards has needs of c-1"), "{error}");
    assert!(error.contains(silent), "{error}");
    let error = ctl.run(&["needs", "--shard", "s-3"]).await.failed(1);
    assert!(error.contains("known: s-1, s-2"), "{error}");
    let error = ctl.run(&["needs", "--shard", "s-1"]).await.failed(1);
    assert!(error.contains("shard s-1 does not answer at 127.0.0.1:1"), "{error}");
    // With the coordinator gone, where it last was.
    coordinator.stop().await.unwrap();
    let done = ctl.run(&["sessions", "--shard", "s-1"]).await;
    assert!(done.err.contains("last known addresses"), "{done:?}");
    assert!(done.failed(1).contains("shard s-1 does not answer"));
}
