//! Backups without a coordinator: what one holds, and putting it into a data directory.

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bigfleet_coordinator::{
    backup::{Backup, Integrity},
    consensus::{Entropy, Restore},
    log::{Disk, RealDisk},
    reports::limits,
};
use bigfleet_net::grpc::check_address;
use serde::Serialize;

use super::snapshot::{Command, RestoreArgs};
use crate::{
    Error,
    console::Console,
    output::{Format, document, table},
    when,
};

/// Those of `snapshot` that never dial.
pub(super) fn run(command: &Command, format: Format, console: &mut Console) -> Result<(), Error> {
    match command {
        Command::Save { .. } => Ok(()),
        Command::Inspect { file } => {
            let found = Contents::of(&read(file, Integrity::Checked)?);
            console.text(&found.rendered(format)?)
        }
        Command::Restore(args) => restore(args, console),
    }
}

fn read(path: &Path, integrity: Integrity) -> Result<Backup, Error> {
    let unusable = |problem: String| Error::Input { path: path.to_owned(), problem };
    Backup::read(path, integrity).map_err(|error| unusable(error.to_string()))
}

fn restore(args: &RestoreArgs, console: &mut Console) -> Result<(), Error> {
    let usage = |problem: String| Error::Usage(problem);
    limits::id("--node-id", &args.node_id).map_err(|error| usage(error.to_string()))?;
    check_address(&args.raft_advertise)
        .map_err(|error| usage(format!("--raft-advertise: {error}")))?;
    let integrity = if args.skip_integrity_check { Integrity::Skipped } else { Integrity::Checked };
    // First of all: what cannot be restored needs no consent.
    let backup = read(&args.backup, integrity)?;
    let (from, dir, node) = (args.backup.display(), args.data_dir.display(), &args.node_id);
    let made = made_at(&backup);
    let (index, term) = (backup.meta().index, backup.meta().term);
    let plan = [
        format!("restore {from} into {dir} as the only voter {node}"),
        format!(
            "go on from index {index} of fleet {}, as it was {}",
            backup.fleet_id().unwrap_or("without a name"),
            if made == 0 { "at an unknown time".to_owned() } else { ago(made) },
        ),
        format!("move the consensus files of {dir} aside"),
    ];
    if !console.consent(args.consent, &plan)? {
        return Ok(());
    }
    let failed = |error: String| Error::Failed(error);
    let entropy = Entropy::from_system().map_err(|error| failed(error.to_string()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let restore = Restore {
        backup,
        node_id: node.clone(),
        raft_address: args.raft_advertise.clone(),
        above: args.above,
        now: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        incarnation: entropy.next(),
        uuid: entropy.uuid(),
    };
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    restore.into_dir(&disk, &args.data_dir).map_err(|error| failed(error.to_string()))?;
    console.line(&format!(
        "restored snapshot index={index} term={term} into {dir} as single-voter {node}"
    ))?;
    console.line(
        "Start this replica first. Empty the volumes of all others before they start, then run \
         `bigfleetctl confirm-restore` when every shard has reported.",
    )
}

/// In unix nanoseconds; 0 if it does not say.
fn made_at(backup: &Backup) -> i64 {
    let nanos = backup.meta().made_at().unwrap_or_default().saturating_mul(1_000_000);
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// `2026-11-16T03:04:05Z (5m ago)`.
pub(super) fn ago(unix_nanos: i64) -> String {
    format!("{} ({} ago)", when::instant(unix_nanos), when::age(when::now(), unix_nanos))
}

/// What is in a backup.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    id: String,
    index: u64,
    term: u64,
    made_at: Option<String>,
    #[serde(skip)]
    made_unix_nanos: i64,
    fleet_id: Option<String>,
    format_version: u32,
    size: u64,
    sha256: String,
    voters: Vec<String>,
    shards: usize,
    clusters: usize,
    domains: usize,
    quotas: usize,
    providers: usize,
    transfers: usize,
    recovering: bool,
}

impl Contents {
    fn of(backup: &Backup) -> Self {
        let (meta, state, counts) = (backup.meta(), backup.state(), backup.state().counts());
        let voters = meta.configuration.servers.iter().filter(|one| one.suffrage == "Voter");
        Self {
            id: meta.id.clone(),
            index: meta.index,
            term: meta.term,
            made_at: when::exact(made_at(backup)),
            made_unix_nanos: made_at(backup),
            fleet_id: backup.fleet_id().map(str::to_owned),
            format_version: meta.format_version,
            size: meta.size,
            sha256: meta.sha256.clone(),
            voters: voters.map(|one| format!("{} ({})", one.id, one.address)).collect(),
            shards: state.shards().len(),
            clusters: counts.clusters,
            domains: counts.domains,
            quotas: state.quotas().len(),
            providers: state.providers().len(),
            transfers: state.transfers().len(),
            recovering: state.recovering(),
        }
    }

    fn rendered(&self, format: Format) -> Result<String, Error> {
        if matches!(format, Format::Json | Format::Yaml) {
            return document(format, self);
        }
        let dash = || "—".to_owned();
        let made = if self.made_unix_nanos == 0 { dash() } else { ago(self.made_unix_nanos) };
        let rows = [
            ("SNAPSHOT", self.id.clone()),
            ("INDEX", self.index.to_string()),
            ("TERM", self.term.to_string()),
            ("MADE", made),
            ("FLEET", self.fleet_id.clone().unwrap_or_else(dash)),
            ("FORMAT", self.format_version.to_string()),
            ("SIZE", format!("{} bytes", self.size)),
            ("SHA256", self.sha256.clone()),
            ("VOTERS", self.voters.join(", ")),
            ("SHARDS", self.shards.to_string()),
            ("CLUSTERS", self.clusters.to_string()),
            ("DOMAINS", self.domains.to_string()),
            ("QUOTAS", self.quotas.to_string()),
            ("PROVIDERS", self.providers.to_string()),
            ("TRANSFERS", self.transfers.to_string()),
            ("RECOVERING", self.recovering.to_string()),
        ];
        Ok(table(rows.into_iter().map(|(name, value)| vec![name.to_owned(), value])))
    }
}
