//! `snapshot restore`, `snapshot inspect` and `confirm-restore`, with a coordinator that
//! is one replica in this process.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bigfleet_coordinator::{
    consensus::{
        Answer, CallError, Compaction, Config, Consensus, Entropy, Envelope, Leadership, Member,
        Response, Timers, Transport, World,
    },
    log::{DataDir, RealDisk},
    metrics::Metrics,
    reports::LivenessLimits,
    service::Coordinator,
    state::{Command, MAX_KIND},
};
use bigfleet_net::{grpc::GrpcServer, readiness::Readiness, shutdown::Shutdown, tls::Security};
use bigfleet_wire::v1alpha1::{ChangedHands, ConfirmRestoreResponse};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::rig::{Ctl, PATIENCE, SECOND, coordinator, lead, now};

/// Nobody to speak to.
struct Alone;

impl Transport for Alone {
    fn call<'a>(&'a self, _: &'a Member, _: Envelope) -> Answer<'a, Result<Response, CallError>> {
        Box::pin(async { Err(CallError::Unreachable("nobody".to_owned())) })
    }
}

/// A replica that is served.
pub(crate) struct Served {
    pub(crate) addr: String,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), bigfleet_net::Error>>,
}

/// Serves a replica in plaintext.
pub(crate) async fn serve(replica: &Consensus) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let metrics = Arc::new(Metrics::default());
    let service = Coordinator::new(Arc::new(replica.clone()), LivenessLimits::default(), metrics);
    let server = GrpcServer::new(Security::Plaintext, Readiness::new("test"));
    let server = server.add_service(Arc::new(service).into_service());
    let shutdown = Shutdown::new();
    let task = tokio::spawn(server.serve(listener, shutdown.clone()));
    Served { addr, shutdown, task }
}

impl Served {
    pub(crate) async fn stop(self) {
        self.shutdown.request();
        self.task.await.unwrap().unwrap();
    }
}

/// A fleet of one replica that leads.
pub(crate) async fn replica(root: &Path) -> Consensus {
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
        grpc_address: String::new(),
        max_kind: MAX_KIND,
        bootstrap: true,
        force_bootstrap: false,
        initial_replicas: 1,
        timers: Timers::scaled(1),
        compaction: Compaction::default(),
    };
    let replica = Consensus::start(config, world).await.unwrap();
    until(|| replica.read(|state| state.fleet_id().is_some()) == Some(true)).await;
    replica
}

async fn until(mut seen: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !seen() {
        assert!(Instant::now() < end, "not in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn term(replica: &Consensus) -> i64 {
    match replica.leadership() {
        Leadership::Leader { term } => term,
        other => panic!("{other:?}"),
    }
}

/// Saves a backup of a fleet that has one provider, with the binary; gives its term.
async fn saved(ctl: &Ctl, file: &str) -> i64 {
    let data = ctl.path("original");
    let replica = replica(&data).await;
    let provider = Command::UpsertProvider {
        name: "ec2".to_owned(),
        address: "p:1".to_owned(),
        region: "eu".to_owned(),
    };
    replica.propose(&provider, PATIENCE).await.unwrap().outcome.unwrap();
    let served = serve(&replica).await;
    let out = ctl.run(&["snapshot", "save", file, "--coordinator", &served.addr]).await.ok();
    assert!(out.starts_with("saved snapshot index="), "{out}");
    let term = term(&replica);
    served.stop().await;
    drop(replica);
    until(|| DataDir::lock(Arc::new(RealDisk), &data).is_ok()).await;
    term
}

const FLAGS: [&str; 6] =
    ["--data-dir", "data", "--node-id", "node-1", "--raft-advertise", "localhost:7791"];

fn restore<'a>(backup: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["snapshot", "restore", backup][..], &FLAGS, more].concat()
}

/// Every file and directory under one, byte for byte.
fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path.clone());
                found.insert(path, None);
            } else {
                found.insert(path.clone(), Some(fs::read(&path).unwrap()));
            }
        }
    }
    found
}

#[tokio::test]
async fn saved_restored_and_started() {
    let ctl = Ctl::bare();
    let mut mark = saved(&ctl, "b.tar").await;
    let described = ctl.run(&["snapshot", "inspect", "b.tar", "-o", "json"]).await.ok();
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    let (index, term_of) = (described["index"].as_u64().unwrap(), described["term"].clone());
    // The first into a directory that is not there, the second over the first.
    for _ in 0..2 {
        let out = ctl.run(&restore("b.tar", &["--yes"])).await.ok();
        let (first, reminder) = out.split_once('\n').unwrap();
        assert_eq!(
            first,
            format!(
                "restored snapshot index={index} term={term_of} into data as single-voter node-1"
            )
        );
        assert_eq!(
            reminder,
            "Start this replica first. Empty the volumes of all others before they start, then \
             run `bigfleetctl confirm-restore` when every shard has reported.\n"
        );
        let data = ctl.path("data");
        let replica = replica(&data).await;
        assert!(term(&replica) > mark);
        mark = term(&replica);
        assert_eq!(replica.status().voters, ["node-1"]);
        let (recovering, provider) = replica
            .read(|state| (state.recovering(), state.providers().contains_key("ec2")))
            .unwrap();
        assert!(recovering && provider);
        // While it runs, nothing is restored under it.
        let before = tree(&data);
        let held = ctl.run(&restore("b.tar", &["--yes"])).await.failed(1);
        assert!(held.contains("LOCK is locked"), "{held}");
        let names = |tree: &BTreeMap<PathBuf, _>| tree.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&tree(&data)), names(&before));
        drop(replica);
        until(|| DataDir::lock(Arc::new(RealDisk), &data).is_ok()).await;
    }
    let aside = fs::read_dir(ctl.path("data"))
        .unwrap()
        .filter(|one| one.as_ref().unwrap().file_name().to_string_lossy().starts_with("replaced-"));
    assert_eq!(aside.count(), 1, "the first found nothing to set aside");
}

#[tokio::test]
async fn inspect_describes_a_backup() {
    let ctl = Ctl::bare();
    saved(&ctl, "b.tar").await;
    let text = ctl.run(&["snapshot", "inspect", "b.tar"]).await.ok();
    for (name, value) in [
        ("SNAPSHOT", "-"),
        ("MADE", "s ago)"),
        ("FLEET", ".00000000"),
        ("FORMAT", "1"),
        ("VOTERS", "node-1 (localhost:7791)"),
        ("PROVIDERS", "1"),
        ("RECOVERING", "false"),
    ] {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with(value) || (value == "-" && line.contains('-')), "{line}");
    }
    fs::write(ctl.path("not.tar"), "hello").unwrap();
    let error = ctl.run(&["snapshot", "inspect", "not.tar"]).await.failed(1);
    assert!(error.starts_with("bigfleetctl: not.tar: not a tar"), "{error}");
}

/// A tar of these entries.
fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

#[tokio::test]
async fn fault_corrupt_truncated_or_foreign_backup() {
    let ctl = Ctl::bare();
    saved(&ctl, "b.tar").await;
    ctl.run(&restore("b.tar", &["--yes"])).await.ok();
    let data = ctl.path("data");
    let before = tree(&data);
    let whole = fs::read(ctl.path("b.tar")).unwrap();
    let mut archive = tar::Archive::new(whole.as_slice());
    let mut parts = archive.entries().unwrap().map(|entry| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry.unwrap(), &mut bytes).unwrap();
        bytes
    });
    let (meta, state) = (parts.next().unwrap(), parts.next().unwrap());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let newer = text(&meta).replace(r#""FormatVersion":1"#, r#""FormatVersion":2"#);
    let older = text(&meta).replace(r#""SHA256":"#, r#""Unknown":"#);
    assert!(newer != text(&meta) && older != text(&meta));
    let mut flipped = state.clone();
    flipped[10] ^= 1;
    // Of another fleet, and good there.
    let elsewhere = Ctl::bare();
    saved(&elsewhere, "b.tar").await;
    let foreign = fs::read(elsewhere.path("b.tar")).unwrap();
    let of = |meta: &[u8], state: &[u8]| tar(&[("meta.json", meta), ("state", state)]);
    for (bytes, words) in [
        (of(&meta, &flipped), "state fails its SHA-256"),
        (of(&meta, &state[..state.len() - 1]), "bytes, meta.json says"),
        (whole[..whole.len() / 2].to_vec(), "cut off"),
        (b"hello".to_vec(), "not a tar"),
        (tar(&[("etc/passwd", b"x")]), "no part of a backup"),
        (of(newer.as_bytes(), &state), "format 2 is newer"),
        (of(older.as_bytes(), &state), "an older version wrote it"),
        (tar(&[("state", &state), ("meta.json", &meta)]), "state is before meta.json"),
        (tar(&[("meta.json", &meta)]), "state is missing"),
        (Vec::new(), "meta.json is missing"),
        (of(b"{}", &state), "index is 0"),
        (of(b"[", &state), "meta.json cannot be read"),
        (foreign, "it is foreign here"),
    ] {
        fs::write(ctl.path("bad.tar"), bytes).unwrap();
        let error = ctl.run(&restore("bad.tar", &["--yes"])).await.failed(1);
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(tree(&data), before, "{words}");
    }
    let error = ctl.run(&restore("nowhere", &["--yes"])).await.failed(1);
    assert!(error.contains("nowhere"), "{error}");
    assert_eq!(tree(&data), before);
    let lock = DataDir::lock(Arc::new(RealDisk), &data).unwrap();
    let held = ctl.run(&restore("b.tar", &["--yes"])).await.failed(1);
    assert!(held.contains("another process uses this data directory"), "{held}");
    assert_eq!(tree(&data), before);
    drop(lock);
    // A human's word is for checksums alone.
    fs::write(ctl.path("bad.tar"), of(older.as_bytes(), &state)).unwrap();
    ctl.run(&restore("bad.tar", &["--yes", "--skip-integrity-check"])).await.ok();
    assert_ne!(tree(&data), before);
}

#[tokio::test]
async fn restore_never_dials_asks_first_and_minds_its_flags() {
    let ctl = Ctl::bare();
    saved(&ctl, "b.tar").await;
    ctl.run(&restore("b.tar", &[])).await.failed(2);
    let shown = ctl.run(&restore("b.tar", &["--dry-run"])).await.ok();
    assert!(
        shown.starts_with("would restore b.tar into data as the only voter node-1\n"),
        "{shown}"
    );
    assert!(shown.contains("ago)\n"), "{shown}");
    assert!(!ctl.path("data").exists());
    for (flags, words) in [
        (&["--data-dir", "d", "--node-id", "a/b", "--raft-advertise", "h:1"][..], "--node-id"),
        (&["--data-dir", "d", "--node-id", "n", "--raft-advertise", "h"], "--raft-advertise"),
        (&["--data-dir", "d", "--node-id", "n"], "--raft-advertise"),
    ] {
        let args = [&["snapshot", "restore", "b.tar", "--yes"], flags].concat();
        let error = ctl.run(&args).await.failed(2);
        assert!(error.contains(words), "{error}");
    }
    ctl.run(&restore("b.tar", &["--yes", "--above", "4000000000"])).await.ok();
    let fleet = fs::read_to_string(ctl.path("data/fleet")).unwrap();
    assert!(fleet.trim().ends_with(".ee6b2801"), "{fleet}");
}

#[tokio::test]
async fn confirm_restore_prints_age_counts_and_every_key_that_changed_hands() {
    let coordinator = coordinator().await;
    lead(&coordinator, &[]);
    let ctl = Ctl::to(&[coordinator.addr()]);
    let shard = |id: &str| id.to_owned();
    coordinator.reply(ConfirmRestoreResponse {
        backup_unix_ns: now() - 600 * SECOND,
        shards: 2,
        domains: 3,
        clusters: 4,
        machines: 5,
        changed: vec![
            ChangedHands {
                cluster_id: "prod-1".to_owned(),
                from_shard_id: shard("s-0"),
                to_shard_id: shard("s-1"),
                ..ChangedHands::default()
            },
            ChangedHands {
                topology_key: "zone".to_owned(),
                topology_value: "a".to_owned(),
                to_shard_id: shard("s-1"),
                ..ChangedHands::default()
            },
        ],
    });
    let out = ctl.run(&["confirm-restore", "--yes"]).await.ok();
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains(" (10m ago); assignments flow with the next reports"), "{out}");
    assert_eq!(
        lines[1..],
        [
            "2 shards, 3 domains, 4 clusters, 5 machines on loan",
            "CHANGED HANDS   BACKUP  NOW",
            "cluster prod-1  s-0     s-1",
            "domain zone=a   —       s-1",
        ]
    );
    coordinator.reply(ConfirmRestoreResponse::default());
    let again = ctl.run(&["confirm-restore", "--yes"]).await.ok();
    assert_eq!(again, "no restore waits; one that did has been confirmed\n");
}
