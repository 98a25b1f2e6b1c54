//! The leader's exports.

use std::{fs, path::Path, sync::Arc, time::Duration};

use bigfleet_coordinator::{
    backup::{Backup, ExportOptions, Integrity, export, export_once},
    consensus::Consensus,
    metrics::Metrics,
};
use bigfleet_net::shutdown::Shutdown;
use tempfile::TempDir;

use crate::rig::{PATIENCE, commit, put, start_with, started, until};

fn options(dir: &Path, retain: usize) -> ExportOptions {
    ExportOptions { dir: dir.to_owned(), interval: Duration::from_millis(20), retain }
}

fn exports(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|one| one.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("20")).collect();
    names.sort_unstable();
    names
}

fn latest(dir: &Path) -> String {
    fs::read_link(dir.join("latest")).unwrap().into_os_string().into_string().unwrap()
}

async fn once(replica: &Consensus, options: &ExportOptions) -> (i64, u64) {
    let metrics = Metrics::default();
    export_once(options, replica, &metrics).await;
    (metrics.last_export.get(), metrics.export_failures.get())
}

#[tokio::test]
async fn an_export_is_a_backup_under_its_time_and_id() {
    let (data, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let replica = started(data.path()).await;
    commit(&replica, &put("p")).await;
    let to = dir.path().join("made/if/absent");
    let (at, failures) = once(&replica, &options(&to, 10)).await;
    assert!(at > 1_700_000_000 && failures == 0, "{at} {failures}");
    let name = exports(&to).pop().unwrap();
    assert_eq!(latest(&to), name);
    let meta: serde_json::Value =
        serde_json::from_slice(&fs::read(to.join(&name).join("meta.json")).unwrap()).unwrap();
    let id = meta["ID"].as_str().unwrap();
    let (stamp, rest) = name.split_at(15);
    assert_eq!(rest, format!("-{id}"));
    let made: jiff::Timestamp = jiff::civil::DateTime::strptime("%Y%m%d-%H%M%S", stamp)
        .unwrap()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .unwrap()
        .timestamp();
    assert!((made.as_second() - at).abs() < 60, "{stamp} is not UTC");
    // Exactly what §10 names.
    let keys: Vec<&String> = meta.as_object().unwrap().keys().collect();
    let wanted = [
        "Configuration",
        "ConfigurationIndex",
        "FleetID",
        "FormatVersion",
        "ID",
        "Index",
        "SHA256",
        "Size",
        "Term",
        "Version",
    ];
    assert_eq!(keys, wanted);
    let server = serde_json::json!(
        {"Suffrage": "Voter", "ID": "node-1", "Address": "localhost:7791"}
    );
    assert_eq!(meta["Configuration"]["Servers"], serde_json::json!([server]));
    let backup = Backup::read(&to, Integrity::Checked).unwrap();
    assert!(backup.state().providers().contains_key("p"));
    assert_eq!(backup.meta().index, replica.status().applied_index);
}

#[tokio::test]
async fn nothing_new_is_a_success_and_writes_nothing() {
    let (data, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let replica = started(data.path()).await;
    let options = options(dir.path(), 10);
    once(&replica, &options).await;
    let first = latest(dir.path());
    // Another process that leads, say: what is new is seen from the files.
    let (at, failures) = once(&replica, &options).await;
    assert!(at > 0 && failures == 0);
    assert_eq!(exports(dir.path()), std::slice::from_ref(&first));
    // Half an export is none.
    fs::write(dir.path().join(&first).join("state"), "cut").unwrap();
    once(&replica, &options).await;
    assert_ne!(latest(dir.path()), first);
    assert_eq!(exports(dir.path()).len(), 2);
    commit(&replica, &put("p")).await;
    once(&replica, &options).await;
    assert_eq!(exports(dir.path()).len(), 3);
    Backup::read(&dir.path().join("latest"), Integrity::Checked).unwrap();
}

#[tokio::test]
async fn old_exports_are_pruned_and_nothing_else() {
    let (data, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let replica = started(data.path()).await;
    for name in ["20200101-000000-1-1-1", "20200102-000000-1-2-2", "20990101-000000-1-3-3", "mine"]
    {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    // A crash left these.
    fs::create_dir(dir.path().join("tmp-20200103-000000-1-3-3")).unwrap();
    fs::write(dir.path().join("tmp-20200103-000000-1-3-3/state"), "half").unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("tmp-latest")).unwrap();
    once(&replica, &options(dir.path(), 3)).await;
    // The clock was once ahead: what was just written is kept all the same.
    let (first, kept) = (latest(dir.path()), exports(dir.path()));
    assert_eq!(kept, ["20200102-000000-1-2-2", &first, "20990101-000000-1-3-3"]);
    commit(&replica, &put("p")).await;
    once(&replica, &options(dir.path(), 1)).await;
    assert_eq!(exports(dir.path()), [latest(dir.path())]);
    let all: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(all.len(), 3, "an export, latest, and what is not ours: {all:?}");
    assert!(dir.path().join("mine").is_dir());
}

#[tokio::test]
async fn fault_export_dir_unwritable() {
    let (data, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let replica = started(data.path()).await;
    let to = dir.path().join("blocked");
    fs::write(&to, "a file").unwrap();
    assert_eq!(once(&replica, &options(&to, 10)).await, (0, 1));
    // Only a warning and a counter.
    commit(&replica, &put("p")).await;
    fs::remove_file(&to).unwrap();
    let (at, failures) = once(&replica, &options(&to, 10)).await;
    assert!(at > 0 && failures == 0);
    // Where the link cannot be made, exports still do not fill the disk.
    fs::remove_file(to.join("latest")).unwrap();
    fs::create_dir_all(to.join("latest/in the way")).unwrap();
    for name in ["a", "b", "c"] {
        commit(&replica, &put(name)).await;
        assert_eq!(once(&replica, &options(&to, 2)).await, (0, 1));
    }
    assert_eq!(exports(&to).len(), 2);
}

#[tokio::test]
async fn the_leader_exports_each_interval_until_the_stop() {
    let (data, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let replica = Arc::new(started(data.path()).await);
    let (metrics, shutdown) = (Arc::new(Metrics::default()), Shutdown::new());
    let running = export(options(dir.path(), 10), replica.clone(), metrics, shutdown.clone());
    let running = tokio::spawn(running);
    until(|| dir.path().join("latest").exists()).await;
    commit(&replica, &put("p")).await;
    until(|| exports(dir.path()).len() == 2).await;
    shutdown.request();
    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap();
}

#[tokio::test]
async fn only_a_leader_exports() {
    let (data, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // It is in no fleet, and nobody makes it one.
    let replica = start_with(data.path(), false).await.unwrap();
    assert_eq!(once(&replica, &options(dir.path(), 1)).await, (0, 0));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
