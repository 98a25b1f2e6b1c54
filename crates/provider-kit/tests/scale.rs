//! What 100,000 machines cost (provider chapter §6, §9). Prints figures and asserts
//! nothing about time:
//! `cargo test --release -p bigfleet-provider-kit --features fault --test scale -- --ignored --nocapture`

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "it/rig.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod rig;

#[path = "../examples/rack.rs"]
#[allow(dead_code, unreachable_pub, reason = "a whole program by itself")]
mod rack;

use std::time::{Duration, Instant};

use bigfleet_provider_kit::{Config, FileStore};
use bigfleet_wire::v1alpha1::{CreateRequest, ListFilter, MachineRef, MachineState};
use tokio::time::MissedTickBehavior;

use crate::{
    rack::Rack,
    rig::{Client, Rig, config},
};

const MACHINES: usize = 100_000;
const CALLERS: usize = 64;
const CALLS: usize = 200;
/// Calls a second of a steady load, half of them Get and half Create, and for how long.
const RATE: u32 = 500;
const STEADY: u32 = 20;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

fn create(number: usize) -> CreateRequest {
    CreateRequest {
        machine_id: format!("slot-{number:06}"),
        shard_id: "scale".into(),
        shard_epoch: 1,
        sequence_number: 1,
    }
}

fn quantiles(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |percent| took[(took.len() - 1) * percent / 100];
    println!("{} {what}: p50 {:?}, p99 {:?}, max {:?}", took.len(), at(50), at(99), at(100));
}

/// Calls that begin on time, whether or not the earlier ones are answered: a slow answer
/// does not thin out the load. From this slot on.
async fn steady(client: &Client, first: usize) {
    let mut tick = tokio::time::interval(Duration::from_secs(1) / RATE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut gets, mut creates) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for number in 0..(RATE * STEADY) as usize {
        let due = tick.tick().await.into_std();
        let mut client = client.clone();
        if number % 2 == 0 {
            let id = format!("slot-{:06}", number * 7919 % MACHINES);
            gets.push(tokio::spawn(async move {
                client.get(MachineRef { id }).await.unwrap();
                due.elapsed()
            }));
        } else {
            creates.push(tokio::spawn(async move {
                client.create(create(first + number / 2)).await.unwrap();
                due.elapsed()
            }));
        }
    }
    let elapsed = begun.elapsed();
    println!("{} calls in {elapsed:?}", RATE * STEADY);
    for (what, calls) in [("Get", gets), ("Create", creates)] {
        let mut took = Vec::with_capacity(calls.len());
        for call in calls {
            took.push(call.await.unwrap());
        }
        quantiles(what, took);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute and is for its figures"]
async fn figures_at_a_hundred_thousand_machines() {
    let directory = tempfile::tempdir().unwrap();
    let before = resident_kib();
    let begun = Instant::now();
    let store = FileStore::open(directory.path()).unwrap();
    // No sweep in between.
    let quiet = Config { sweep_interval: Duration::from_secs(3600), ..config() };
    let rack = || Rack::open(MACHINES, &directory.path().join("rack")).unwrap();
    let mut rig = Rig::start(rack(), store, quiet.clone()).await;
    println!("seeded in {:?}", begun.elapsed());
    let grown = resident_kib() - before;
    println!("seeding left {grown} KiB resident, {} bytes a machine", grown * 1024 / 100_000);

    for _ in 0..3 {
        let begun = Instant::now();
        let listed = rig.list(ListFilter::default()).await;
        println!("full List of {} in {:?}", listed.machines.len(), begun.elapsed());
    }

    steady(&rig.client, 20_000).await;

    let begun = Instant::now();
    let callers = (0..CALLERS).map(|caller| {
        let mut client = rig.client.clone();
        tokio::spawn(async move {
            let mut took = Vec::with_capacity(CALLS);
            for call in 0..CALLS {
                let begun = Instant::now();
                client.create(create(caller * CALLS + call)).await.unwrap();
                took.push(begun.elapsed());
            }
            took
        })
    });
    let mut took = Vec::new();
    for caller in callers.collect::<Vec<_>>() {
        took.extend(caller.await.unwrap());
    }
    let elapsed = begun.elapsed();
    let accepted = took.len() as f64 / elapsed.as_secs_f64();
    // Each is two durable mutations: acceptance and completion.
    let idle = ListFilter { states: vec![MachineState::Idle.into()], ..Default::default() };
    let all = took.len() + (RATE * STEADY / 2) as usize;
    while rig.list(idle.clone()).await.machines.len() < all {}
    let mutations = 2.0 * took.len() as f64 / begun.elapsed().as_secs_f64();
    println!("accepted {accepted:.0} a second in {elapsed:?}: {mutations:.0} durable mutations");
    quantiles("Create as fast as may be", took);

    let since_revision = rig.list(ListFilter::default()).await.revision;
    for number in 0..100 {
        rig.create(&format!("slot-{:06}", 50_000 + number)).await.unwrap();
    }
    for _ in 0..3 {
        let begun = Instant::now();
        let filter = ListFilter { since_revision: since_revision.clone(), ..Default::default() };
        let delta = rig.list(filter).await;
        println!("delta of {} in {:?}", delta.machines.len(), begun.elapsed());
    }
    rig.stop().await;

    let (before, begun) = (resident_kib(), Instant::now());
    let store = FileStore::open(directory.path()).unwrap();
    println!("opened and verified in {:?}", begun.elapsed());
    let rig = Rig::start(rack(), store, quiet).await;
    println!("restarted in {:?}, resident {before} -> {} KiB", begun.elapsed(), resident_kib());
    rig.stop().await;
}
