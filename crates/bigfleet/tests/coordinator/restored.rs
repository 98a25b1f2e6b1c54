//! A fleet that lost all its disks comes back from an export, and nothing changes hands.

use std::{fs, path::Path, process::Output, time::Duration};

use bigfleet_wire::v1alpha1::ListShardsRequest;
use tonic::Code;

use crate::{
    fleet::{Fleet, REPLICAS, copy},
    rig::process::{until, until_or},
    shards::{Holder, Shard},
};

/// A replica asks all others once a minute whether they know a newer fleet.
const STATUS_ROUNDS: Duration = Duration::from_secs(150);

fn said(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

async fn assign(fleet: &Fleet, zone: &str, shard: &str) -> Output {
    let domain = ["--key", "zone", "--value", zone, "--shard", shard, "--yes"];
    fleet.ctl(&[&["assign-domain"], &domain[..]].concat()).await
}

/// Gauges are looked after every second.
async fn until_gauge(fleet: &Fleet, replica: usize, name: &str, wanted: f64) {
    let name = format!("bigfleet_coordinator_{name}");
    until(&format!("{name} {wanted}"), async || {
        fleet.metric(replica, &name).await.filter(|value| *value == wanted)
    })
    .await;
}

/// Waits for an export that knows so many domains, and puts it aside.
async fn exported(fleet: &Fleet, exports: &Path, domains: u64) -> String {
    let latest = exports.join("latest").display().to_string();
    until("an export of the newest state", async || {
        let shown = fleet.ctl(&["snapshot", "inspect", &latest, "-o", "json"]).await;
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).ok()?;
        (shown["domains"].as_u64()? == domains).then_some(())
    })
    .await;
    let backup = fleet.path("backup");
    copy(&fs::canonicalize(latest).unwrap(), &backup);
    backup.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_restored_from_an_export_after_all_replicas_were_lost() {
    let mut fleet = Fleet::new();
    let exports = fleet.path("exports");
    fs::create_dir(&exports).unwrap();
    fleet.also(&[
        &format!("--snapshot-export-dir={}", exports.display()),
        "--snapshot-export-interval=1s",
    ]);
    fleet.start_all();
    let old_id = fleet.until_open().await;
    let client = fleet.client();
    let mut real = Shard::start(&fleet, "s-1", &[]);
    real.until_reported("ok").await;
    let (mut a, mut b) = (Holder::new(&fleet, "a"), Holder::new(&fleet, "b"));
    a.settle().await;
    b.settle().await;
    client.write("kept").await.unwrap();
    for (zone, shard) in [("1", "a"), ("2", "b")] {
        let done = assign(&fleet, zone, shard).await;
        assert!(done.status.success(), "{}", said(&done));
    }
    a.settle().await;
    b.settle().await;
    let backup = exported(&fleet, &exports, 2).await;
    // What the backup does not know.
    assert!(assign(&fleet, "3", "b").await.status.success());
    b.settle().await;
    assert_eq!((a.held(), b.held()), (vec!["1"], vec!["2", "3"]));

    for replica in 0..REPLICAS {
        fleet.kill(replica).await;
        let aside = fleet.path(&format!("old-{replica}"));
        fs::rename(fleet.data_dir(replica), aside).unwrap();
    }
    real.cycles().await;
    let data = fleet.data_dir(0).display().to_string();
    let raft = fleet.places[0].raft.clone();
    let into = ["--data-dir", &data, "--node-id", "c-0", "--raft-advertise", &raft, "--yes"];
    let done = fleet.ctl(&[&["snapshot", "restore", &backup], &into[..]].concat()).await;
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("as single-voter c-0"), "{}", said(&done));
    // Somebody forgot to empty the last volume.
    copy(&fleet.path("old-2"), &fleet.data_dir(2));
    fleet.start_all();

    let new_id = until("a restored fleet of two", async || {
        let status = client.status(0).await.ok()?;
        assert!(!status.voters.contains(&"c-2".to_owned()), "{status:?}");
        (status.voters == ["c-0", "c-1"]).then_some(status.fleet_id)
    })
    .await;
    let generation = |id: &str| id.rsplit_once('.').unwrap().1.to_owned();
    assert_eq!(new_id.split_once('.').unwrap().0, old_id.split_once('.').unwrap().0);
    assert!(generation(&new_id) > generation(&old_id), "{new_id} after {old_id}");
    recovers(&fleet, &mut a, &mut b).await;
    assert_eq!(a.fleet(), new_id);
    // The real shard came along, and works on.
    real.until_reported("ok").await;
    real.cycles().await;
    let written = until("an answer", async || client.written().await.ok()).await;
    assert_eq!(written, ["kept"]);

    // The old disk: superseded, until it is emptied.
    let what = || "a replica that knows that it is superseded".to_owned();
    let mut superseded = async || client.status(2).await.ok().filter(|status| status.phase == 3);
    let old = until_or(&what, STATUS_ROUNDS, &mut superseded).await;
    assert_eq!(old.fleet_id, old_id);
    let refused = client.replica(2).list_shards(ListShardsRequest {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(refused.message(), format!("superseded by {new_id}"));
    until_gauge(&fleet, 2, "superseded", 1.0).await;
    let found = said(&fleet.ctl(&["doctor"]).await);
    let line = found.lines().position(|line| line.contains("FAULT") && line.contains("superseded"));
    let fix = line.and_then(|line| found.lines().nth(line + 1));
    assert!(fix.is_some_and(|fix| fix.contains("empty its volume")), "{found}");
    fleet.wipe(2).await;
    fleet.start(2);
    assert_eq!(fleet.until_open().await, new_id);

    goes_not_back(&mut fleet, &mut real, &mut a).await;
}

/// Nothing is told and nothing changes until all have said what they hold.
async fn recovers(fleet: &Fleet, a: &mut Holder, b: &mut Holder) {
    let refused = until("a leader that refuses", async || {
        let done = assign(fleet, "9", "a").await;
        said(&done).contains("recovering").then_some(done)
    })
    .await;
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    let leader = fleet.leader().await;
    until_gauge(fleet, leader, "recovering", 1.0).await;
    let early = fleet.ctl(&["confirm-restore", "--yes"]).await;
    assert!(!early.status.success());
    assert!(said(&early).contains("a, b"), "who is missing: {}", said(&early));
    let ack = until("an answer", async || a.report().await.ok()).await;
    assert!(ack.assignment.is_none() && ack.instructions.is_empty());
    a.settle().await;
    let early = fleet.ctl(&["confirm-restore", "--yes"]).await;
    assert!(!early.status.success() && said(&early).contains(": b;"), "{}", said(&early));
    b.settle().await;
    let listed = said(&fleet.ctl(&["list-domain-assignments"]).await);
    let done = fleet.ctl(&["confirm-restore", "--yes"]).await;
    assert!(done.status.success(), "{}", said(&done));
    let changed: Vec<String> = said(&done)
        .lines()
        .filter(|line| line.starts_with("domain "))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(changed, ["domain zone=3 — b"], "{}", said(&done));
    for (shard, held) in [(&mut *a, vec!["1"]), (&mut *b, vec!["2", "3"])] {
        let ack = until("an answer", async || shard.report().await.ok()).await;
        assert!(ack.assignment.is_some() && !ack.want_holdings);
        assert_eq!(shard.held(), held, "no owner changes by a restore");
    }
    assert_eq!(said(&fleet.ctl(&["list-domain-assignments"]).await), listed);
    let done = assign(fleet, "9", "a").await;
    assert!(done.status.success(), "normal again: {}", said(&done));
    until_gauge(fleet, leader, "recovering", 0.0).await;
}

/// The fleet of before, all of it, and nobody else: no shard returns to it.
async fn goes_not_back(fleet: &mut Fleet, real: &mut Shard, a: &mut Holder) {
    for replica in 0..REPLICAS {
        fleet.wipe(replica).await;
        copy(&fleet.path(&format!("old-{replica}")), &fleet.data_dir(replica));
    }
    fleet.start_all();
    fleet.until_open().await;
    let refused = until("a refusal", async || {
        a.report().await.err().filter(|refused| refused.code() == Code::Aborted)
    })
    .await;
    assert!(refused.message().starts_with("superseded"), "{refused}");
    real.until_reported("error").await;
    let leader = fleet.leader().await;
    let foreign = fleet.metric(leader, "bigfleet_coordinator_foreign_fleet_total").await;
    assert!(foreign >= Some(1.0), "{foreign:?}");
    let heard = fleet.client().shards().await.unwrap();
    assert!(heard.iter().all(|shard| shard.last_heartbeat_unix_ns == 0), "{heard:?}");
    real.cycles().await;
}
