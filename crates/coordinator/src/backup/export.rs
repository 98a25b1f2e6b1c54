//! The leader's backups, every few minutes.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    log::{
        Disk as _, LogError, RealDisk, SnapshotMeta,
        snapshots::{TEMPORARY, write_artefacts},
    },
    metrics::Metrics,
    service::{Leadership, Phase, Replica, ReplicaError, Snapshot},
};

const LATEST: &str = "latest";

/// Where backups go, and how many.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// `--snapshot-export-dir`.
    pub dir: PathBuf,
    /// `--snapshot-export-interval`.
    pub interval: Duration,
    /// `--snapshot-export-retain`; one at least is kept.
    pub retain: usize,
}

#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error(transparent)]
    Write(#[from] LogError),
    #[error("no snapshot: {0}")]
    Snapshot(ReplicaError),
    #[error("the snapshot's meta cannot be read: {0}")]
    Meta(#[from] serde_json::Error),
    #[error("writing it panicked")]
    Panicked,
}

/// Exports each interval until the stop, while this replica leads. A failure is a
/// warning and a count: a fleet without a new backup goes on.
pub async fn export<R: Replica>(
    options: ExportOptions,
    replica: Arc<R>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
) {
    let mut ticks = interval_at(Instant::now() + options.interval, options.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => export_once(&options, &*replica, &metrics).await,
            () = shutdown.requested() => return,
        }
    }
}

/// One export, if this replica leads. Nothing new is a success too.
pub async fn export_once<R: Replica>(options: &ExportOptions, replica: &R, metrics: &Metrics) {
    let leads = matches!(replica.leadership(), Leadership::Leader { .. });
    if !leads || replica.phase() != Phase::Open {
        return;
    }
    match make_current(options, replica).await {
        Ok(()) => drop(metrics.last_export.set(Timestamp::now().as_second())),
        Err(ExportError::Snapshot(ReplicaError::NotLeader(_))) => {}
        Err(error) => {
            tracing::warn!(%error, dir = %options.dir.display(), "no backup was exported");
            metrics.export_failures.inc();
        }
    }
}

async fn make_current<R: Replica>(options: &ExportOptions, replica: &R) -> Result<(), ExportError> {
    let now = replica
        .look(|state| (state.fleet_id().unwrap_or_default().to_owned(), state.applied_index()));
    if exported(&options.dir).is_some_and(|last| (last.fleet_id, last.index) == now) {
        return Ok(());
    }
    let Some(snapshot) = replica.snapshot().await.map_err(ExportError::Snapshot)? else {
        return Ok(());
    };
    let (dir, retain) = (options.dir.clone(), options.retain);
    let written = tokio::task::spawn_blocking(move || write(&dir, retain, &snapshot));
    written.await.map_err(|_| ExportError::Panicked)?
}

/// The newest export in full, whoever wrote it.
fn exported(dir: &Path) -> Option<SnapshotMeta> {
    let latest = dir.join(LATEST);
    let meta: SnapshotMeta =
        serde_json::from_slice(&fs::read(latest.join("meta.json")).ok()?).ok()?;
    let whole = fs::metadata(latest.join("state")).is_ok_and(|state| state.len() == meta.size);
    whole.then_some(meta)
}

fn write(dir: &Path, retain: usize, snapshot: &Snapshot) -> Result<(), ExportError> {
    let meta: SnapshotMeta = serde_json::from_slice(&snapshot.meta_json)?;
    let name = format!("{}-{}", Timestamp::now().strftime("%Y%m%d-%H%M%S"), meta.id);
    RealDisk.create_dir_all(dir).map_err(LogError::io("creating", dir))?;
    clear(dir)?;
    write_artefacts(&RealDisk, dir, &name, &snapshot.meta_json, &snapshot.state)?;
    // Each interval writes one more, so room is made although the link cannot be.
    let (pointed, pruned) = (point(dir, &name), prune(dir, retain, &name));
    Ok(pointed.and(pruned)?)
}

/// Takes away what a crash left.
fn clear(dir: &Path) -> Result<(), LogError> {
    let names = RealDisk.list(dir).map_err(LogError::io("listing", dir))?;
    for name in names.iter().filter(|name| name.starts_with(TEMPORARY)) {
        let path = dir.join(name);
        let removed = match path.is_dir() && !path.is_symlink() {
            true => RealDisk.remove_dir_all(&path),
            false => RealDisk.remove_file(&path),
        };
        removed.map_err(LogError::io("removing", &path))?;
    }
    Ok(())
}

/// `latest` is never absent and never half of anything.
fn point(dir: &Path, name: &str) -> Result<(), LogError> {
    let (link, latest) = (dir.join(format!("{TEMPORARY}{LATEST}")), dir.join(LATEST));
    symlink(name, &link).map_err(LogError::io("linking", &link))?;
    RealDisk.rename(&link, &latest).map_err(LogError::io("renaming", &latest))?;
    RealDisk.sync_dir(dir).map_err(LogError::io("syncing", dir))
}

/// Keeps the newest by their names. The one just written counts as the newest,
/// whatever the clock said when the others were.
fn prune(dir: &Path, retain: usize, newest: &str) -> Result<(), LogError> {
    let mut names = RealDisk.list(dir).map_err(LogError::io("listing", dir))?;
    names.retain(|name| is_export(name) && name != newest);
    let surplus = names.len().saturating_sub(retain.saturating_sub(1));
    for name in &names[..surplus] {
        let path = dir.join(name);
        RealDisk.remove_dir_all(&path).map_err(LogError::io("removing", &path))?;
    }
    Ok(())
}

/// `<YYYYMMDD-HHMMSS>-<id>`. Nothing else is ours to remove.
fn is_export(name: &str) -> bool {
    let mut parts = name.splitn(3, '-');
    let digits = |part: Option<&str>, count: usize| {
        part.is_some_and(|part| part.len() == count && part.bytes().all(|b| b.is_ascii_digit()))
    };
    digits(parts.next(), 8)
        && digits(parts.next(), 6)
        && parts.next().is_some_and(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exports_are_pruned() {
        for (name, ours) in [
            ("20261116-025417-3-42-1700000000000", true),
            ("latest", false),
            ("20261116-025417", false),
            ("20261116-025417-", false),
            ("2026111-0254171-x", false),
            ("lost+found", false),
            ("20261116-02541x-1", false),
        ] {
            assert_eq!(is_export(name), ours, "{name}");
        }
    }
}
