//! A replica that is a group of its own, and backups of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bigfleet_coordinator::{
    backup::{Backup, Integrity},
    consensus::{
        Answer, CallError, Compaction, Config, Consensus, Entropy, Envelope, Leadership, Member,
        Response, Restore, RestoreError, StartError, Timers, Transport, World,
    },
    log::{Disk, RealDisk, SnapshotMeta},
    state::{Command, MAX_KIND},
};
use bigfleet_model::FleetId;
use tempfile::TempDir;

/// Nothing here takes that long; what does has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// 2023-11-14, in ms.
pub(crate) const NOW: u64 = 1_700_000_000_000;

/// Nobody to speak to.
struct Alone;

impl Transport for Alone {
    fn call<'a>(&'a self, _: &'a Member, _: Envelope) -> Answer<'a, Result<Response, CallError>> {
        Box::pin(async { Err(CallError::Unreachable("nobody".to_owned())) })
    }
}

pub(crate) async fn try_start(root: &Path) -> Result<Consensus, StartError> {
    start_with(root, true).await
}

pub(crate) async fn start_with(root: &Path, bootstrap: bool) -> Result<Consensus, StartError> {
    let world = World {
        disk: Arc::new(RealDisk),
        root: root.to_owned(),
        transport: Arc::new(Alone),
        peers: None,
        entropy: Arc::new(Entropy::from_system().unwrap()),
        log_thread: true,
        observe_fsync: None,
    };
    let config = Config {
        node_id: "node-1".to_owned(),
        raft_address: "localhost:7791".to_owned(),
        grpc_address: "localhost:7790".to_owned(),
        max_kind: MAX_KIND,
        bootstrap,
        force_bootstrap: false,
        initial_replicas: 1,
        timers: Timers::scaled(1),
        compaction: Compaction::default(),
    };
    Consensus::start(config, world).await
}

/// Started, leading and open.
pub(crate) async fn started(root: &Path) -> Consensus {
    let replica = try_start(root).await.unwrap();
    until(|| replica.read(|state| state.fleet_id().is_some()) == Some(true)).await;
    replica
}

pub(crate) async fn until(mut seen: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !seen() {
        assert!(Instant::now() < end, "not in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn term(replica: &Consensus) -> i64 {
    match replica.leadership() {
        Leadership::Leader { term } => term,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn commit(replica: &Consensus, command: &Command) {
    replica.propose(command, PATIENCE).await.unwrap().outcome.unwrap();
}

pub(crate) fn put(name: &str) -> Command {
    let (name, address) = (name.to_owned(), "p:1".to_owned());
    Command::UpsertProvider { name, address, region: String::new() }
}

/// The two artefacts of a backup, to be spoilt.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) meta: serde_json::Value,
    pub(crate) state: Vec<u8>,
}

impl Parts {
    /// Of a fleet that serves.
    pub(crate) async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let replica = started(dir.path()).await;
        commit(&replica, &put("p")).await;
        let stored = replica.snapshot().unwrap();
        let meta = SnapshotMeta { membership: None, ..stored.meta };
        Self { meta: serde_json::to_value(meta).unwrap(), state: stored.state }
    }

    /// Sets a field of meta.json.
    pub(crate) fn with(mut self, field: &str, value: impl Into<serde_json::Value>) -> Self {
        self.meta[field] = value.into();
        self
    }

    /// Changes the state's text, and describes it rightly.
    pub(crate) fn edited(mut self, from: &str, to: &str) -> Self {
        let text = String::from_utf8(self.state).unwrap();
        assert!(text.contains(from), "{text}");
        self.state = text.replacen(from, to, 1).into_bytes();
        let meta: SnapshotMeta = serde_json::from_value(self.meta.clone()).unwrap();
        let format = meta.format_version;
        self.meta = serde_json::to_value(meta.describing(&self.state)).unwrap();
        self.with("FormatVersion", format)
    }

    pub(crate) fn meta(&self) -> Vec<u8> {
        serde_json::to_vec(&self.meta).unwrap()
    }

    pub(crate) fn tar(&self) -> Vec<u8> {
        tar(&[("meta.json", &self.meta()), ("state", &self.state)])
    }

    pub(crate) fn read(&self, integrity: Integrity) -> Result<Backup, String> {
        Backup::from_tar(self.tar().as_slice(), integrity).map_err(|error| error.to_string())
    }

    pub(crate) fn backup(&self) -> Backup {
        self.read(Integrity::Checked).unwrap()
    }
}

pub(crate) fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, name, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

pub(crate) fn restore(backup: Backup, now: u64) -> Restore {
    Restore {
        backup,
        node_id: "node-1".to_owned(),
        raft_address: "localhost:7791".to_owned(),
        above: None,
        now,
        incarnation: now,
        uuid: "fresh".to_owned(),
    }
}

pub(crate) fn into_dir(restore: Restore, root: &Path) -> Result<FleetId, RestoreError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    restore.into_dir(&disk, root)
}

/// Every file under a directory, and every directory, byte for byte.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path.clone());
                found.insert(path, None);
            } else {
                found.insert(path.clone(), Some(fs::read(&path).unwrap()));
            }
        }
    }
    found
}
