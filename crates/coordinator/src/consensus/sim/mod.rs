//! Replicas in one process, on a network and on disks that a seed decides.
//!
//! Time is tokio's paused clock: it moves only when nothing else can happen,
//! so a minute of elections and partitions takes milliseconds. The wall clock jumps by up
//! to an hour whenever it is looked at.

mod chaos;
mod cut_off;
mod formation;
mod leadership;
mod linear;
mod network;
mod recovery;
mod slow_disks;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bigfleet_model::FleetId;
use tokio::time::{Instant, sleep};

use self::network::Net;
use super::*;
use crate::{
    backup::Backup,
    log::{Disk, memory::MemoryDisk},
    state::{Command, MAX_KIND},
};

/// Seeds of a test: `BIGFLEET_SEED` alone if it is set, else `count`, or that times
/// `BIGFLEET_MORE_SEEDS`.
fn seeds(count: u64) -> Vec<u64> {
    let number = |name| Some(std::env::var(name).ok()?.parse::<u64>().expect(name));
    match number("BIGFLEET_SEED") {
        Some(seed) => vec![seed],
        None => (0..count * number("BIGFLEET_MORE_SEEDS").unwrap_or(1)).collect(),
    }
}

/// Runs one seed on a runtime of its own, and names it when it fails.
fn run<F: Future<Output = ()>>(seed: u64, test: impl FnOnce(u64) -> F) {
    struct Named(u64);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("replay with BIGFLEET_SEED={}", self.0);
            }
        }
    }
    let _named = Named(seed);
    crate::wall::wandering::begin(seed);
    if std::env::var("BIGFLEET_SIM_LOG").is_ok() {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(std::env::var("BIGFLEET_SIM_LOG").unwrap())
            .with_test_writer()
            .try_init();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(test(seed));
}

/// A group of replicas `c-0`, `c-1`, … with their disks.
struct Group {
    net: Net,
    random: Entropy,
    disks: BTreeMap<String, MemoryDisk>,
    size: usize,
    /// How long a second is by each replica's monotonic clock, in ms; 1,000 if not given.
    clocks: BTreeMap<usize, u32>,
}

fn name(ordinal: usize) -> String {
    format!("c-{ordinal}")
}

/// Into the first replica, on 2023-11-14.
fn restore_of(backup: Backup) -> Restore {
    Restore {
        backup,
        node_id: name(0),
        raft_address: name(0),
        above: None,
        now: 1_700_000_000_000,
        incarnation: 77,
        uuid: String::new(),
    }
}

fn into_disk(restore: Restore, disk: &MemoryDisk) -> Result<FleetId, RestoreError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    restore.into_dir(&disk, Path::new("/data"))
}

impl Group {
    /// All replicas on empty disks, started.
    async fn new(seed: u64, size: usize) -> Self {
        let group = Self::stopped(seed, size);
        let mut group = group;
        for ordinal in 0..size {
            group.start(ordinal).await.unwrap();
        }
        group
    }

    fn stopped(seed: u64, size: usize) -> Self {
        let disks = (0..size).map(|ordinal| (name(ordinal), MemoryDisk::new())).collect();
        let (net, random) = (Net::new(seed), Entropy::seeded(seed ^ 0xabcd));
        Self { net, random, disks, size, clocks: BTreeMap::new() }
    }

    /// By a clock that runs slow or fast, all timers are long or short.
    fn timers(&self, ordinal: usize) -> Timers {
        let Timers { heartbeat, election, lease } = Timers::scaled(1);
        let clock = self.clocks.get(&ordinal).copied().unwrap_or(1_000);
        let [heartbeat, election, lease] =
            [heartbeat, election, lease].map(|timer| timer * clock / 1_000);
        Timers { heartbeat, election, lease }
    }

    fn config(&self, ordinal: usize) -> Config {
        Config {
            node_id: name(ordinal),
            raft_address: name(ordinal),
            grpc_address: format!("{}:7790", name(ordinal)),
            max_kind: MAX_KIND,
            bootstrap: true,
            force_bootstrap: false,
            initial_replicas: self.size,
            timers: self.timers(ordinal),
            // Often, so that faults meet snapshots too.
            compaction: Compaction {
                interval: Duration::from_secs(3),
                entries: 16,
                trailing: 8,
                bytes: 1 << 10,
            },
        }
    }

    async fn start(&mut self, ordinal: usize) -> Result<Consensus, StartError> {
        let config = self.config(ordinal);
        let (address, disk) = (name(ordinal), self.disks[&name(ordinal)].clone());
        self.start_as(&address, config, disk).await
    }

    async fn start_as(
        &mut self,
        address: &str,
        config: Config,
        disk: MemoryDisk,
    ) -> Result<Consensus, StartError> {
        let world = World {
            disk: Arc::new(disk),
            root: PathBuf::from("/data"),
            transport: Arc::new(self.net.end(address)),
            peers: Some(Arc::new(self.net.end(address))),
            entropy: Arc::new(Entropy::seeded(self.random.next())),
            log_thread: false,
            observe_fsync: None,
        };
        let consensus = Consensus::start(config, world).await?;
        self.net.attach(address, &consensus);
        Ok(consensus)
    }

    fn replica(&self, ordinal: usize) -> Option<Consensus> {
        self.net.replica(&name(ordinal))
    }

    /// Ends a replica as a power cut does.
    fn crash(&mut self, ordinal: usize) {
        let id = name(ordinal);
        self.net.detach(&id);
        let keep = u8::try_from(self.random.next() % 256).unwrap();
        let disk = self.disks[&id].after_crash(keep);
        self.disks[&id].fail_after(0, crate::log::memory::Fault::Error);
        self.disks.insert(id, disk);
    }

    /// Crashes a replica and empties its disk.
    fn wipe(&mut self, ordinal: usize) {
        self.crash(ordinal);
        self.disks.insert(name(ordinal), MemoryDisk::new());
    }

    /// The replica that may serve, if there is one.
    fn leader(&self) -> Option<(usize, Consensus)> {
        let mut replicas = (0..self.size).filter_map(|i| Some((i, self.replica(i)?)));
        replicas.find(|(_, one)| matches!(one.leadership(), Leadership::Leader { .. }))
    }

    /// Waits until a leader serves an open fleet.
    async fn opened(&self) -> (usize, Consensus) {
        let found = self.within(Duration::from_secs(120), || {
            let opened = |one: &Consensus| one.read(|state| state.fleet_id().is_some());
            self.leader().filter(|(_, one)| opened(one) == Some(true))
        });
        found.await.unwrap_or_else(|| panic!("no open fleet: {:#?}", self.statuses()))
    }

    fn statuses(&self) -> Vec<Status> {
        (0..self.size).filter_map(|i| Some(self.replica(i)?.status())).collect()
    }

    async fn within<T>(&self, limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let end = Instant::now() + limit;
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            if Instant::now() >= end {
                return None;
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// One register.
fn put(key: &str, value: u64) -> Command {
    let (name, address) = (key.to_owned(), value.to_string());
    Command::UpsertProvider { name, address, region: String::new() }
}

fn get(consensus: &Consensus, key: &str) -> Option<u64> {
    consensus.read(|state| state.providers().get(key).map_or(0, |row| row.address.parse().unwrap()))
}
