//! `bigfleetctl pause --all` with every coordinator dead.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::{
    fleet::{Fleet, REPLICAS},
    rig::process::until,
    shards::Shard,
};

/// The goal is one second; a machine that runs tests has other things to do, too.
const GENEROUS: Duration = Duration::from_secs(20);

fn decided(shard: &Shard, after: Timestamp) -> usize {
    let records = shard.audit();
    let decided = |record: &&bigfleet_shard::audit::Record| {
        record.time > after && record.outcome == "decided"
    };
    records.iter().filter(decided).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shard_stops_with_every_coordinator_dead() {
    let mut fleet = Fleet::open().await;
    let shards: Vec<Shard> = (0..3)
        .map(|at| {
            let machines =
                ["--seed-machines=20", "--seed-speculative=40", "--cycle-interval=100ms"];
            Shard::start(&fleet, &format!("s-{at}"), &machines)
        })
        .collect();
    let client = fleet.client();
    until("three shards that were heard", async || {
        let shards = client.shards().await.ok()?;
        let heard = shards.iter().filter(|one| one.last_heartbeat_unix_ns > 0).count();
        (heard == 3).then_some(())
    })
    .await;
    // From here on it knows their addresses.
    assert!(fleet.ctl(&["list-shards"]).await.status.success());
    let sound = fleet.ctl(&["doctor"]).await;
    assert!(sound.status.success(), "{}", String::from_utf8_lossy(&sound.stdout));
    let _clusters: Vec<_> =
        shards.iter().map(|shard| shard.restless(&fleet, &format!("of-{}", shard.id))).collect();
    let start = Timestamp::now();
    for shard in &shards {
        until("a shard that is busy", async || (decided(shard, start) > 5).then_some(())).await;
    }
    for replica in 0..REPLICAS {
        fleet.kill(replica).await;
    }

    let (begun, before) = (Instant::now(), Timestamp::now());
    let done = fleet.ctl(&["pause", "--all", "--reason", "incident 7", "--yes"]).await;
    let took = begun.elapsed();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}{err}");
    assert_eq!(out.lines().filter(|line| line.contains("PAUSED")).count(), 3, "{out}");
    assert!(err.contains("last known addresses"), "{err}");
    let mut stops = Vec::new();
    for shard in &shards {
        let of_the_brake = |record: &bigfleet_shard::audit::Record| {
            record.kind == bigfleet_shard::audit::SET_ACTUATION && record.time > before
        };
        // Decisions go on, and nothing comes of them.
        let (brake, since) = until("decisions that are withheld", async || {
            let records = shard.audit();
            let at = records.iter().position(of_the_brake)?;
            let since = records[at + 1..].to_vec();
            let withheld = since.iter().filter(|record| record.outcome == "suppressed").count();
            (withheld > 5).then(|| (records[at].clone(), since))
        })
        .await;
        let after: Vec<_> = since.iter().filter(|record| record.outcome == "decided").collect();
        assert!(after.is_empty(), "{} decided after the brake: {after:?}", shard.id);
        stops.push(brake.time.duration_since(before).unsigned_abs());
    }
    println!("pause --all took {took:?}; shards stopped after {stops:?}");
    assert!(took < GENEROUS, "{took:?}");

    let (begun, before) = (Instant::now(), Timestamp::now());
    let done = fleet.ctl(&["resume", "--all", "--reason", "over", "--yes"]).await;
    println!("resume --all took {:?}", begun.elapsed());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for shard in &shards {
        until("a shard that works again", async || (decided(shard, before) > 5).then_some(()))
            .await;
    }
}
