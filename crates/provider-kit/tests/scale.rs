//! What 100,000 machines cost (provider chapter §6, §9). Prints figures and asserts
//! nothing about time:
//! `cargo test --release -p bigfleet-provider-kit --features fault --test scale -- --ignored --nocapture`

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "it/rig.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod rig;

use std::time::{Duration, Instant};

use bigfleet_provider_kit::{Config, FileStore, example::OneRack};
use bigfleet_wire::v1alpha1::{CreateRequest, ListFilter};

use crate::rig::{Rig, config};

const MACHINES: usize = 100_000;
const CALLERS: usize = 64;
const CALLS: usize = 200;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or_default()
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
    let mut rig = Rig::start(OneRack::new(MACHINES), store, quiet.clone()).await;
    println!("seeded in {:?}", begun.elapsed());
    println!("seeding left {} KiB resident", resident_kib() - before);

    for _ in 0..3 {
        let begun = Instant::now();
        let listed = rig.list(ListFilter::default()).await;
        println!("full List of {} in {:?}", listed.machines.len(), begun.elapsed());
    }

    let begun = Instant::now();
    let callers = (0..CALLERS).map(|caller| {
        let mut client = rig.client.clone();
        tokio::spawn(async move {
            let mut took = Vec::with_capacity(CALLS);
            for call in 0..CALLS {
                let number = caller * CALLS + call;
                let request = CreateRequest {
                    machine_id: format!("slot-{number:06}"),
                    shard_id: "scale".into(),
                    shard_epoch: 1,
                    sequence_number: 1,
                };
                let begun = Instant::now();
                client.create(request).await.unwrap();
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
    took.sort_unstable();
    // Each is two durable mutations: acceptance and completion.
    println!(
        "{} Creates in {elapsed:?}: {:.0} accepted a second, p50 {:?}, p99 {:?}, max {:?}",
        took.len(),
        took.len() as f64 / elapsed.as_secs_f64(),
        took[took.len() / 2],
        took[took.len() * 99 / 100],
        took[took.len() - 1],
    );

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
    let rig = Rig::start(OneRack::new(MACHINES), store, quiet).await;
    println!("restarted in {:?}, resident {before} -> {} KiB", begun.elapsed(), resident_kib());
    rig.stop().await;
}
