//! The audit log: what producers write, readers read and the disk keeps.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::{fs, io::BufReader, path::Path, sync::Arc, time::Duration};

use bigfleet_engine::{Action, ActionKind, action::Acquisition, input::NeedKey, output::NeedIdx};
use bigfleet_model::{Fingerprint, Group, Stamp};
use bigfleet_shard::{
    audit::{Audit, Cursor, Filter, Item, Lagging, MAX_BEHIND, Start, check::check},
    metrics::Metrics,
    outcome::{Disposition, Outcome},
};
use serde_json::{Value, json};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(30);
const EPOCH_7: i64 = 7 << 40;
/// What the ring keeps.
const RING: i64 = 65_536;

fn audit(epoch: i64, path: Option<&Path>) -> Arc<Audit> {
    let path = path.map(Path::to_owned);
    Arc::new(Audit::open(epoch, path, &Metrics::default()).expect("an audit"))
}

fn stamp(need: &str, priority: i32) -> Stamp {
    Stamp {
        priority: Some(priority),
        fingerprint: Fingerprint::from(need),
        group: Group::from("gang"),
        ..Stamp::default()
    }
}

fn bootstrap(machine: &str, need: &str) -> Action {
    let acquisition =
        Acquisition { cluster: "a".into(), stamp: stamp(need, 100).into(), need: NeedIdx(0) };
    Action {
        machine: machine.into(),
        kind: ActionKind::Bootstrap(acquisition),
        cost: 1.5,
        runner_up_cost: Some(2.5),
        domain_rule: 0,
    }
}

fn decide(audit: &Audit, machine: &str) -> i64 {
    audit.decided(3, &bootstrap(machine, "p=1"), None, Disposition::Decided)
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a log");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

async fn next(cursor: &mut Cursor) -> Item {
    timeout(LONG, cursor.next()).await.expect("a record in time").expect("not lagging")
}

#[test]
fn lines_have_the_fields_of_the_chapter() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.jsonl");
    let audit = audit(7, Some(&path));
    let seq = decide(&audit, "m-1");
    assert_eq!(seq, EPOCH_7 + 1);
    audit.outcome(seq, Outcome::ProviderError, "op-9", "no quota");
    let preempt = Action {
        kind: ActionKind::Preempt {
            cluster: "b".into(),
            grace: Duration::from_secs(600),
            preemptor_priority: 1_000,
            preemptor: NeedKey {
                cluster: "a".into(),
                fingerprint: "p=1000".into(),
                group: Group::none(),
            },
            need: NeedIdx(0),
        },
        cost: f64::INFINITY,
        runner_up_cost: None,
        ..bootstrap("m-2", "")
    };
    audit.decided(4, &preempt, Some(&stamp("p=5", 5)), Disposition::Suppressed);
    let delete = Action { kind: ActionKind::Delete, ..bootstrap("m-3", "") };
    audit.decided(4, &delete, Some(&stamp("p=5", 5)), Disposition::DryRun);
    audit.actuation("paused", "incident 12", "bigfleet://admin");
    assert!(audit.flush(LONG));

    let mut lines = lines(&path);
    for line in &mut lines {
        let time = line.as_object_mut().expect("an object").remove("time").expect("a time");
        let text = time.as_str().expect("a text");
        assert_eq!((text.len(), &text[19..20], &text[29..]), (30, ".", "Z"), "{text}");
        text.parse::<jiff::Timestamp>().expect("RFC 3339");
    }
    let decided = json!({
        "cycle": 3, "kind": "Bootstrap", "machine": "m-1", "cluster": "a",
        "reason": "phase1.idle", "grace_seconds": 0, "outcome": "decided", "seq": EPOCH_7 + 1,
        "need": "p=1", "group": "gang", "priority": 100, "preemptor_priority": 0,
        "cost": 1.5, "runner_up_cost": 2.5,
    });
    assert_eq!(lines[0], decided);
    let mut failed = decided;
    failed["outcome"] = "provider_error".into();
    failed["seq"] = (EPOCH_7 + 2).into();
    failed["of"] = (EPOCH_7 + 1).into();
    failed["operation_id"] = "op-9".into();
    failed["error"] = "no quota".into();
    assert_eq!(lines[1], failed);
    let suppressed = json!({
        "cycle": 4, "kind": "Preempt", "machine": "m-2", "cluster": "b",
        "reason": "phase2.inversion", "grace_seconds": 600, "outcome": "suppressed",
        "seq": EPOCH_7 + 3, "need": "p=5", "group": "gang", "priority": 5,
        "preemptor_priority": 1_000, "cost": null, "runner_up_cost": null,
    });
    assert_eq!(lines[2], suppressed);
    assert_eq!(lines[3]["cluster"], "");
    assert_eq!((&lines[3]["need"], &lines[3]["priority"]), (&json!(""), &json!(0)));
    assert_eq!(lines[3]["outcome"], "dryrun");
    assert_eq!(lines[4]["kind"], "SetActuation");
    assert_eq!(lines[4]["outcome"], "paused");
    assert_eq!(lines[4]["reason"], "incident 12");
    assert_eq!(lines[4]["set_by"], "bigfleet://admin");
}

/// Reads its own log with the check that all other tests use.
#[test]
fn shard_inv_22_every_decision_closes_once_or_with_its_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.jsonl");
    let summary = || check(BufReader::new(fs::File::open(&path).expect("a log")));
    let first = audit(1, Some(&path));
    let (one, two) = (decide(&first, "m-1"), decide(&first, "m-2"));
    first.outcome(one, Outcome::ReclaimWait, "", "");
    first.outcome(one, Outcome::Success, "", "");
    // Nobody closes a decision twice, and none that was not open.
    first.outcome(one, Outcome::Success, "", "");
    first.outcome(one, Outcome::ReclaimWait, "", "");
    first.outcome(two + 77, Outcome::Success, "", "");
    assert!(first.flush(LONG));
    let good = summary().expect("a good log");
    assert_eq!((good.decided, good.closed, good.open), (2, 1, 1));

    // The next process leaves its predecessor's alone.
    let second = audit(2, Some(&path));
    second.outcome(two, Outcome::Success, "", "");
    let three = decide(&second, "m-2");
    second.outcome(three, Outcome::Other, "", "");
    assert!(second.flush(LONG));
    let good = summary().expect("a good log");
    assert_eq!((good.decided, good.closed, good.open), (3, 2, 0));

    // The check sees what is wrong.
    let text = fs::read_to_string(&path).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    let fails = |lines: &[&str], with: &str| {
        let error = check(lines.join("\n").as_bytes()).expect_err("a broken log");
        assert!(error.contains(with), "{error}");
    };
    let again =
        lines[3].replace(&format!("\"seq\":{}", (1_i64 << 40) + 4), "\"seq\":1099511627781");
    fails(&[lines[0], lines[1], lines[2], lines[3], &again], "which is closed");
    fails(&[lines[1], lines[2], lines[3]], "not decided");
    fails(&[lines[0], lines[2]], "are lost");
    fails(&[lines[1], lines[0]], "after");
    fails(&[lines[0], "{\"seq\":"], "no record");
}

#[test]
fn a_torn_tail_of_a_dead_process_spoils_no_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.jsonl");
    fs::write(&path, "{\"seq\": 12, \"time\": \"20").expect("a torn log");
    let audit = audit(1, Some(&path));
    decide(&audit, "m-1");
    assert!(audit.flush(LONG));
    let text = fs::read_to_string(&path).expect("a log");
    let last = text.lines().last().expect("a line");
    assert_eq!(serde_json::from_str::<Value>(last).expect("JSON")["machine"], "m-1");
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn a_log_that_cannot_be_opened_ends_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    Audit::open(1, Some(dir.path().to_owned()), &Metrics::default()).expect_err("a directory");
}

/// /dev/full refuses every write: the producers must not notice.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_counted_and_blocks_nobody() {
    let metrics = Metrics::default();
    let audit = Audit::open(1, Some("/dev/full".into()), &metrics).expect("an audit");
    for _ in 0..RING + 5_000 {
        decide(&audit, "m-1");
    }
    let dropped = metrics.audit_dropped.get();
    assert_eq!(dropped, 5_000, "all but what the buffer holds");
    assert!(!audit.flush(Duration::ZERO));
    let deadline = std::time::Instant::now() + LONG;
    while metrics.audit_errors.get() < 2 {
        assert!(std::time::Instant::now() < deadline, "the file is opened again and again");
        std::thread::yield_now();
    }
    // Readers in memory are not concerned.
    let need = NeedKey { cluster: "a".into(), fingerprint: "p=1".into(), group: "gang".into() };
    assert_eq!(audit.last_of_need(&need, 100).len(), 100);
}

#[tokio::test]
async fn a_reader_goes_from_file_through_ring_to_now() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.jsonl");
    let before = audit(6, Some(&path));
    for _ in 0..3 {
        decide(&before, "old");
    }
    assert!(before.flush(LONG));
    let audit = audit(7, Some(&path));
    for n in 0..RING + 10 {
        decide(&audit, "m-1");
        // No faster than the disk, or lines would be dropped.
        assert!(n % 10_000 != 0 || audit.flush(LONG));
    }
    assert!(audit.flush(LONG));
    let mut cursor = audit.subscribe(Start::After((6 << 40) + 1), Filter::default());
    let mut expected = vec![(6 << 40) + 2, (6 << 40) + 3];
    expected.extend((1..=RING + 10).map(|n| EPOCH_7 + n));
    for seq in expected {
        let item = next(&mut cursor).await;
        assert_eq!((item.record.seq, item.gap), (seq, false));
    }
    let live = decide(&audit, "m-2");
    assert_eq!(next(&mut cursor).await.record.seq, live);
    let mut oldest = audit.subscribe(Start::Oldest, Filter::default());
    assert_eq!(next(&mut oldest).await.record.seq, (6 << 40) + 1);
}

/// Numbers jump by 2^40 between two processes; nobody has fallen behind by that.
#[tokio::test]
async fn a_reader_of_an_earlier_process_waits_for_the_first_record_of_this() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.jsonl");
    let before = audit(6, Some(&path));
    let old = decide(&before, "old");
    assert!(before.flush(LONG));
    let with_file = audit(7, Some(&path));
    let mut cursor = with_file.subscribe(Start::Oldest, Filter::default());
    assert_eq!(next(&mut cursor).await.record.seq, old);
    let without = audit(7, None);
    let mut blind = without.subscribe(Start::After(old), Filter::default());
    for (audit, cursor, lost) in [(&with_file, &mut cursor, false), (&without, &mut blind, true)] {
        let waits = timeout(Duration::from_millis(1), cursor.next()).await;
        assert!(waits.is_err(), "nothing is there yet");
        decide(audit, "m-1");
        let item = next(cursor).await;
        assert_eq!((item.record.seq, item.gap), (EPOCH_7 + 1, lost));
    }
}

#[tokio::test]
async fn what_was_lost_is_a_gap() {
    let audit = audit(7, None);
    for _ in 0..RING + 10 {
        decide(&audit, "m-1");
    }
    let gap = async |start: Start| {
        let mut cursor = audit.subscribe(start, Filter::default());
        let (one, two) = (next(&mut cursor).await, next(&mut cursor).await);
        assert!(!two.gap, "told once");
        (one.record.seq - EPOCH_7, one.gap)
    };
    assert_eq!(gap(Start::from_wire(EPOCH_7 + 5)).await, (11, true));
    assert_eq!(gap(Start::from_wire(EPOCH_7 + 10)).await, (11, false), "the next is kept");
    assert_eq!(gap(Start::from_wire(EPOCH_7 + 20)).await, (21, false));
    assert_eq!(gap(Start::from_wire(-1)).await, (11, false), "asked for what is kept");
    assert_eq!(gap(Start::from_wire((6 << 40) + 9)).await, (11, true), "of another process");

    let mut now = audit.subscribe(Start::from_wire(0), Filter::default());
    let mut ahead = audit.subscribe(Start::from_wire(9 << 40), Filter::default());
    let seq = decide(&audit, "m-2");
    let (now, ahead) = (next(&mut now).await, next(&mut ahead).await);
    assert_eq!((now.record.seq, now.gap), (seq, false));
    assert_eq!((ahead.record.seq, ahead.gap), (seq, true), "never issued by this shard");
}

#[tokio::test]
async fn a_slow_reader_is_ended_and_may_resume() {
    let audit = audit(7, None);
    for _ in 0..5 * MAX_BEHIND {
        decide(&audit, "m-1");
    }
    // Old records are read at the reader's own pace.
    let mut cursor = audit.subscribe(Start::Oldest, Filter::default());
    for _ in 0..5 * MAX_BEHIND {
        next(&mut cursor).await;
    }
    let waits = timeout(Duration::from_millis(1), cursor.next()).await;
    assert!(waits.is_err(), "nothing is there, so it is at the head");
    for _ in 0..MAX_BEHIND {
        decide(&audit, "m-1");
    }
    let last = next(&mut cursor).await.record.seq;
    decide(&audit, "m-1");
    next(&mut cursor).await;
    for _ in 0..2 {
        decide(&audit, "m-1");
    }
    let ended = cursor.next().await.expect_err("too far behind");
    assert_eq!(ended, Lagging { behind: MAX_BEHIND + 1, after: last + 1 });
    let mut resumed = audit.subscribe(Start::from_wire(ended.after), Filter::default());
    let item = next(&mut resumed).await;
    assert_eq!((item.record.seq, item.gap), (last + 2, false));
}

#[tokio::test]
async fn filters_pass_what_is_wanted() {
    let audit = audit(7, None);
    let mut by_machine =
        audit.subscribe(Start::Now, Filter { machine: "m-2".into(), ..Filter::default() });
    let mut by_priority =
        audit.subscribe(Start::Now, Filter { min_priority: 101, ..Filter::default() });
    let mut by_outcome =
        audit.subscribe(Start::Now, Filter { outcome: "success".into(), ..Filter::default() });
    let mut by_kind =
        audit.subscribe(Start::Now, Filter { kinds: vec!["Delete".into()], ..Filter::default() });
    let one = decide(&audit, "m-1");
    let two = decide(&audit, "m-2");
    audit.outcome(one, Outcome::Success, "", "");
    let delete = Action { kind: ActionKind::Delete, ..bootstrap("m-3", "") };
    let three = audit.decided(4, &delete, None, Disposition::Decided);
    assert_eq!(next(&mut by_machine).await.record.seq, two);
    assert_eq!(next(&mut by_outcome).await.record.of, Some(one));
    assert_eq!(next(&mut by_kind).await.record.seq, three);
    let none = timeout(Duration::from_millis(1), by_priority.next()).await;
    assert!(none.is_err());
}

#[test]
fn the_wire_form_says_none_as_minus_one() {
    let audit = audit(7, None);
    let action = Action { runner_up_cost: None, ..bootstrap("m-1", "p=1") };
    let seq = audit.decided(3, &action, None, Disposition::Decided);
    audit.outcome(seq, Outcome::Success, "", "");
    let need = NeedKey { cluster: "a".into(), fingerprint: "p=1".into(), group: "gang".into() };
    let records = audit.last_of_need(&need, 100);
    let wire = records[0].to_wire(true);
    assert_eq!((wire.sequence, wire.of_sequence, wire.gap), (seq + 1, seq, true));
    assert_eq!((wire.effective_cost, wire.runner_up_cost), (1.5, -1.0));
    assert_eq!((&*wire.outcome, &*wire.profile_fingerprint), ("success", "p=1"));
    assert_eq!(records[1].to_wire(false).of_sequence, 0);
}
