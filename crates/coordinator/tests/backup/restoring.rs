//! From a backup to a data directory, and to a replica that leads.

use std::{fs, sync::Arc};

use bigfleet_coordinator::{
    backup::{Backup, Integrity},
    consensus::RestoreError,
    log::{DataDir, RealDisk},
};
use tempfile::TempDir;

use crate::rig::{
    NOW, Parts, commit, into_dir, put, restore, started, term, tree, try_start, until,
};

#[tokio::test]
async fn a_restored_replica_leads_with_terms_above_every_mark() {
    let dir = TempDir::new().unwrap();
    let replica = started(dir.path()).await;
    commit(&replica, &put("before")).await;
    let backup = Backup::from_snapshot(replica.snapshot().unwrap()).unwrap();
    commit(&replica, &put("after")).await;
    let mut mark = term(&replica);
    // Its disk is held, and stays as it is.
    let held = into_dir(restore(backup.clone(), NOW), dir.path()).unwrap_err();
    assert!(held.to_string().contains("LOCK is locked"), "{held}");
    drop(replica);
    let (past, index) = (backup.fleet_id().unwrap().to_owned(), backup.meta().index);
    until(|| DataDir::lock(Arc::new(RealDisk), dir.path()).is_ok()).await;
    // Twice from one backup within a second, into one directory: above itself too.
    for (nth, now) in [NOW, NOW + 1].into_iter().enumerate() {
        let before = tree(dir.path());
        let fleet = into_dir(restore(backup.clone(), now), dir.path()).unwrap();
        assert_eq!(u64::from(fleet.generation()), NOW / 1000 + nth as u64);
        assert!(past.starts_with(fleet.uuid()));
        let aside = dir.path().join(format!("replaced-{now}"));
        for (path, bytes) in before {
            let name = path.strip_prefix(dir.path()).unwrap().to_owned();
            let stays = name.starts_with("LOCK")
                || name.starts_with("ballast")
                || name.to_string_lossy().starts_with("replaced-");
            if let Some(bytes) = bytes.filter(|_| !stays) {
                assert_eq!(fs::read(aside.join(&name)).unwrap(), bytes, "{}", name.display());
            }
        }
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|one| one.unwrap()).collect();
        let names: Vec<String> =
            names.iter().map(|one| one.file_name().into_string().unwrap()).collect();
        assert!(!names.iter().any(|name| name.starts_with("tmp-") || name == "restoring"));

        let replica = started(dir.path()).await;
        assert!(term(&replica) > mark, "{} is not above {mark}", term(&replica));
        mark = term(&replica);
        let state = |name: &str| {
            let name = name.to_owned();
            replica.read(move |state| state.providers().contains_key(&name)).unwrap()
        };
        assert!(state("before") && !state("after"), "commits since the backup are lost");
        assert_eq!(replica.read(|state| state.recovering()), Some(true));
        let status = replica.status();
        assert_eq!(status.voters, ["node-1"]);
        assert_eq!(status.fleet_id, fleet.to_string());
        assert!(status.applied_index > index, "it goes on from the backup's index");
        commit(&replica, &put("later")).await;
        drop(replica);
        until(|| DataDir::lock(Arc::new(RealDisk), dir.path()).is_ok()).await;
        // And once more, as any replica: the log holds what came since.
        let replica = started(dir.path()).await;
        assert!(replica.read(|state| state.providers().contains_key("later")).unwrap());
        drop(replica);
        until(|| DataDir::lock(Arc::new(RealDisk), dir.path()).is_ok()).await;
    }
}

#[tokio::test]
async fn generations_rise_above_all_that_is_known() {
    let parts = Parts::new().await;
    let past = parts.backup().fleet_id().unwrap().to_owned();
    let uuid = past.rsplit_once('.').unwrap().0.to_owned();
    let seconds = u32::try_from(NOW / 1000).unwrap();
    let ahead = |generation: u32| {
        let fleet = format!("{uuid}.{generation:08x}");
        parts.clone().edited(&past, &fleet).with("FleetID", fleet).backup()
    };
    for (backup, above, known, wanted) in [
        (parts.backup(), None, None, Some(seconds)),
        (parts.backup(), Some(seconds - 1), None, Some(seconds)),
        (parts.backup(), Some(seconds), None, Some(seconds + 1)),
        (ahead(seconds + 7), None, None, Some(seconds + 8)),
        (ahead(seconds + 7), Some(seconds + 9), None, Some(seconds + 10)),
        (parts.backup(), None, Some(seconds + 20), Some(seconds + 21)),
        (parts.backup(), Some(u32::MAX), None, None),
        (ahead(u32::MAX), None, None, None),
    ] {
        let dir = TempDir::new().unwrap();
        if let Some(known) = known {
            fs::write(dir.path().join("superseded"), format!("{uuid}.{known:08x}\n")).unwrap();
        }
        let mut restore = restore(backup, NOW);
        restore.above = above;
        let fleet = into_dir(restore, dir.path());
        assert_eq!(fleet.as_ref().ok().map(bigfleet_model::FleetId::generation), wanted);
        if wanted.is_none() {
            assert!(matches!(fleet, Err(RestoreError::LastGeneration(u32::MAX))));
            assert!(!dir.path().join("fleet").exists());
        }
    }
}

#[tokio::test]
async fn a_backup_of_another_fleet_is_foreign_here() {
    let (ours, theirs) = (Parts::new().await, Parts::new().await);
    let dir = TempDir::new().unwrap();
    into_dir(restore(ours.backup(), NOW), dir.path()).unwrap();
    let before = tree(dir.path());
    let refused = into_dir(restore(theirs.backup(), NOW), dir.path()).unwrap_err();
    assert!(matches!(refused, RestoreError::Foreign { .. }), "{refused}");
    assert_eq!(tree(dir.path()), before);
}

/// One of the base contract, which knew neither digests nor fleets.
#[tokio::test]
async fn an_older_backup_needs_a_humans_word() {
    let mut parts = Parts::new().await;
    parts.state =
        br#"{"shards":[{"ID":"a","Address":"a:1"}],"cluster_to_shard":{"k":"a"}}"#.to_vec();
    parts.meta = serde_json::json!({
        "ID": "3-40-1690000000000", "Index": 40, "Term": 3, "Size": parts.state.len(), "Version": 1,
        "Configuration": {"Servers": [{"Suffrage": "Voter", "ID": "n", "Address": "n:1"}]},
    });
    assert!(parts.read(Integrity::Checked).unwrap_err().contains("--skip-integrity-check"));
    let dir = TempDir::new().unwrap();
    let backup = parts.read(Integrity::Skipped).unwrap();
    let fleet = into_dir(restore(backup, NOW), dir.path()).unwrap();
    assert_eq!(fleet.to_string(), "fresh.6553f100");
    let replica = started(dir.path()).await;
    assert_eq!(replica.read(|state| state.shards().len()), Some(1));
    assert!(replica.status().applied_index > 40);
    assert!(term(&replica) > i64::from(fleet.generation()) << 20);
}

#[tokio::test]
async fn a_fleet_that_had_not_opened_has_nothing_to_restore() {
    let parts = Parts::new().await;
    let fleet = parts.backup().fleet_id().unwrap().to_owned();
    let unopened = parts.edited(&format!("\"{fleet}\""), "null").with("FleetID", "");
    let dir = TempDir::new().unwrap();
    let refused = into_dir(restore(unopened.backup(), NOW), dir.path()).unwrap_err();
    assert!(matches!(refused, RestoreError::NotOpened), "{refused}");
    assert!(tree(dir.path()).is_empty());
}

#[tokio::test]
async fn a_restore_that_was_cut_off_is_not_started_from() {
    let (parts, dir) = (Parts::new().await, TempDir::new().unwrap());
    into_dir(restore(parts.backup(), NOW), dir.path()).unwrap();
    fs::write(dir.path().join("restoring"), "1\n").unwrap();
    let refused = try_start(dir.path()).await.err().unwrap();
    assert!(refused.to_string().contains("run snapshot restore again"), "{refused}");
    into_dir(restore(parts.backup(), NOW + 1000), dir.path()).unwrap();
    started(dir.path()).await;
}

/// A volume that was put back in place: a snapshot in it is a backup, too.
#[tokio::test]
async fn a_snapshot_of_a_data_directory_is_a_backup() {
    let (parts, dir) = (Parts::new().await, TempDir::new().unwrap());
    let first = into_dir(restore(parts.backup(), NOW), dir.path()).unwrap();
    let snapshot = fs::read_dir(dir.path().join("snapshots")).unwrap().next().unwrap().unwrap();
    let backup = Backup::read(&snapshot.path(), Integrity::Checked).unwrap();
    assert_eq!(backup.fleet_id(), Some(first.as_str()));
    let second = into_dir(restore(backup, NOW), dir.path()).unwrap();
    assert_eq!(second.generation(), first.generation() + 1);
    started(dir.path()).await;
}
