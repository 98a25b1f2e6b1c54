//! Shards that are cut off, and shards that are two.

use crate::{
    fleet::{Fleet, REPLICAS},
    rig::{
        binaries::bigfleet,
        links::Links,
        ports::port,
        process::{Process, get, sum, sum_of, until},
    },
    shards::Shard,
};

/// Shards in a state, as the leader counts them.
async fn shards(fleet: &Fleet, replica: usize, state: &str) -> Option<f64> {
    let metrics = get(&fleet.places[replica].http, "/metrics").await?.1;
    sum_of(&metrics, "bigfleet_coordinator_shards", &[&format!("state=\"{state}\"")])
}

async fn until_shard_is(fleet: &Fleet, state: &str) {
    let client = fleet.client();
    until(&format!("a shard that is {state}"), async || {
        let leader = fleet.leader_now(&client).await?;
        shards(fleet, leader, state).await.filter(|count| *count == 1.0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_one_shard_partitioned_from_the_coordinator() {
    let mut fleet = Fleet::new();
    fleet.also(&["--shard-stale-after=2s", "--shard-expire-after=5s"]);
    let links = Links::new(2);
    let (mut proxies, mut addresses) = (Vec::new(), Vec::new());
    for replica in 0..REPLICAS {
        let (at, target) = (port(), fleet.places[replica].grpc.clone());
        proxies.push(links.proxy((0, 1), at.parse().unwrap(), target.parse().unwrap()).await);
        // Followers name this address, too.
        let args = fleet.args(replica, &[&format!("--grpc-advertise={at}")]);
        fleet.replicas[replica] = Some(Process::spawn(&bigfleet(), &args, &fleet.log(replica)));
        addresses.push(at);
    }
    fleet.until_open().await;
    let at = format!("--coordinator-addr={}", addresses.join(","));
    let mut shard = Shard::start(&fleet, "s-1", &[&at]);
    until_shard_is(&fleet, "live").await;
    let assign = ["assign-domain", "--key", "zone", "--shard", "s-1", "--yes", "--value"];
    let ctl = async |args: &[&str]| {
        let done = fleet.ctl(args).await;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    ctl(&[&assign[..], &["a"]].concat()).await;
    shard.until_reported("ok").await;

    links.isolate(0);
    until_shard_is(&fleet, "stale").await;
    until_shard_is(&fleet, "expired").await;
    shard.cycles().await;
    // It keeps what it had, and may be given more.
    ctl(&[&assign[..], &["b"]].concat()).await;
    let domains = ctl(&["list-domain-assignments"]).await;
    assert_eq!(domains.matches("s-1").count(), 2, "{domains}");
    assert!(ctl(&["list-shards"]).await.contains("s-1"), "nobody removes it");

    links.heal();
    until_shard_is(&fleet, "live").await;
    let client = fleet.client();
    until("all instructions acked", async || {
        let leader = fleet.leader_now(&client).await?;
        let metrics = get(&fleet.places[leader].http, "/metrics").await?.1;
        let pending = sum(&metrics, "bigfleet_coordinator_pending_instructions");
        (pending.unwrap_or_default() == 0.0).then_some(())
    })
    .await;
    shard.cycles().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_two_processes_with_one_shard_id() {
    let mut fleet = Fleet::open().await;
    let mut first = Shard::start(&fleet, "s-1", &[]);
    first.until_reported("ok").await;
    let stale = async |fleet: &Fleet| {
        let leader = fleet.leader().await;
        let counted = fleet.metric(leader, "bigfleet_coordinator_stale_epoch_total").await;
        counted.unwrap_or_default()
    };
    assert_eq!(stale(&fleet).await, 0.0);
    // The same epoch on another volume.
    let mut second = Shard::start_in(&fleet, "s-1", "second", &[]);
    second.until_reported("error").await;
    assert!(second.process.log().contains("stale shard epoch"), "{}", second.process.tail());
    assert!(stale(&fleet).await > 0.0);
    first.until_reported("ok").await;
    assert_eq!(first.reports("error").await.unwrap_or_default(), 0.0);
    // The next leader says so, too.
    let leader = fleet.leader().await;
    fleet.kill(leader).await;
    first.until_reported("ok").await;
    second.until_reported("error").await;
    assert!(stale(&fleet).await > 0.0);
    assert_eq!(second.reports("ok").await.unwrap_or_default(), 0.0, "by every leader");
    fleet.start(leader);
    // A higher epoch takes over, and the lower one is refused.
    second.process.kill().await;
    let second = Shard::start_in(&fleet, "s-1", "second", &[]);
    second.until_reported("ok").await;
    first.until_reported("error").await;
    assert!(first.process.log().contains("stale shard epoch"), "{}", first.process.tail());
    assert!(first.process.is_running(), "a human decides");
}
