//! `snapshot save`, `snapshot restore`, `snapshot inspect`, `confirm-restore`.

use std::path::PathBuf;

use bigfleet_wire::v1alpha1::{
    ChangedHands, ConfirmRestoreRequest, ConfirmRestoreResponse, SnapshotSaveRequest,
    snapshot_save_chunk::Payload,
};
use clap::Subcommand;

use super::{archive::Archive, offline::ago};
use crate::{Error, cli::Consent, console::Console, coordinator::Rpc, fleet::Fleet, output::table};

/// Subcommands of `snapshot`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Save the coordinator's state to a file
    Save {
        /// The file; one that is there is replaced when the new one is complete
        file: PathBuf,
    },
    /// Put a backup into the data directory of a replica that does not run
    Restore(RestoreArgs),
    /// Show what is in a backup
    Inspect {
        /// A saved file or an export directory
        file: PathBuf,
    },
}

impl Command {
    /// Whether it never dials.
    pub(super) fn is_offline(&self) -> bool {
        !matches!(self, Self::Save { .. })
    }
}

/// Flags of `snapshot restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A saved file, an export directory, or its `latest`
    pub backup: PathBuf,
    /// Data directory of the replica
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Id of the replica
    #[arg(long, value_name = "ID")]
    pub node_id: String,
    /// host:port at which its peers will dial it
    #[arg(long, value_name = "ADDR")]
    pub raft_advertise: String,
    /// Restore although checksums do not agree
    #[arg(long)]
    pub skip_integrity_check: bool,
    /// Mint a generation above this one
    #[arg(long, value_name = "GENERATION")]
    pub above: Option<u32>,
    #[command(flatten)]
    pub(super) consent: Consent,
}

/// `snapshot save`.
pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    command: &Command,
) -> Result<(), Error> {
    let Command::Save { file } = command else { return Ok(()) };
    let what = "snapshot save";
    let refused = |status| Error::refused(what, &status);
    let mut rpc = fleet.coordinator.leader().await?;
    let mut frames = rpc.snapshot_save(SnapshotSaveRequest {}).await.map_err(refused)?.into_inner();
    let first = frames.message().await.map_err(refused)?.and_then(|chunk| chunk.payload);
    let Some(Payload::MetaJson(meta)) = first else {
        return Err(Error::Failed(
            "the coordinator's first frame is not the snapshot's meta; nothing was saved"
                .to_owned(),
        ));
    };
    let mut archive = Archive::create(file, &meta)?;
    while let Some(chunk) = frames.message().await.map_err(refused)? {
        match chunk.payload {
            Some(Payload::Data(data)) => archive.write(&data)?,
            Some(Payload::MetaJson(_)) => {
                return Err(Error::Failed("the coordinator sent a second meta".to_owned()));
            }
            None => {}
        }
    }
    let saved = archive.finish()?;
    console.line(&format!(
        "saved snapshot index={} term={} to {}",
        saved.index,
        saved.term,
        file.display()
    ))
}

/// Flags of `confirm-restore`.
#[derive(Debug, clap::Args)]
pub struct ConfirmArgs {
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn confirm(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &ConfirmArgs,
) -> Result<(), Error> {
    let plan = if args.consent.wants_plan() {
        let shards = fleet.coordinator.shards().await?;
        let silent: Vec<&str> = shards
            .iter()
            .filter(|shard| shard.last_heartbeat_unix_ns == 0)
            .map(|shard| shard.shard_id.as_str())
            .collect();
        let mut plan = vec![format!(
            "end the recovery: what {} registered shards hold becomes theirs, the rest goes to \
             the backup's owners",
            shards.len()
        )];
        // Who has said it the list does not tell: a shard that reports may have to wait for
        // its provider, and one with a scope of its own is not waited for.
        let mut refusal =
            "be refused while a shard that shares its provider has not said what it holds"
                .to_owned();
        if !silent.is_empty() {
            refusal.push_str("; these were not heard so far: ");
            refusal.push_str(&silent.join(", "));
        }
        plan.push(refusal);
        plan
    } else {
        Vec::new()
    };
    if !console.consent(args.consent, &plan)? {
        return Ok(());
    }
    let call = async |mut rpc: Rpc, request| rpc.confirm_restore(request).await;
    let found = fleet.coordinator.ask("confirm-restore", ConfirmRestoreRequest {}, call).await?;
    console.text(&confirmed(&found))
}

/// What the recovery came to. A coordinator says nothing when none was left to end.
fn confirmed(found: &ConfirmRestoreResponse) -> String {
    if *found == ConfirmRestoreResponse::default() {
        return "no restore waits; one that did has been confirmed\n".to_owned();
    }
    let made = match found.backup_unix_ns {
        0 => "at an unknown time".to_owned(),
        nanos => ago(nanos),
    };
    let ConfirmRestoreResponse { shards, domains, clusters, machines, changed, .. } = found;
    let mut text = format!(
        "confirmed the restore of a backup made {made}; assignments flow with the next reports\n\
         {shards} shards, {domains} domains, {clusters} clusters, {machines} machines on loan\n"
    );
    if changed.is_empty() {
        return text + "nothing changed hands since the backup\n";
    }
    let head = ["CHANGED HANDS", "BACKUP", "NOW"].map(str::to_owned).to_vec();
    let shard = |id: &str| if id.is_empty() { "—".to_owned() } else { id.to_owned() };
    let row = |one: &ChangedHands| {
        let key = match one.cluster_id.as_str() {
            "" => format!("domain {}={}", one.topology_key, one.topology_value),
            cluster => format!("cluster {cluster}"),
        };
        vec![key, shard(&one.from_shard_id), shard(&one.to_shard_id)]
    };
    text.push_str(&table(std::iter::once(head).chain(changed.iter().map(row))));
    text
}
