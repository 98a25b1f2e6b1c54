//! What only the process itself can see, on the reference fake: SM-26 holds the
//! readiness signal back, MD-05 changes the caller's own map. A process of its
//! own, for a mutant is a whole broken process.

use std::{path::Path, process::Stdio, time::Duration};

use bigfleet_model::{MachineId, MachineState};
use bigfleet_provider::{
    Configure, Identity, Provider, Stamped,
    fake::{Fake, FakeOptions, PerKind, Seed},
    mutant::{self, Mutant},
};
use clap::Args;
use tokio::process::Command;

use crate::{
    Error,
    case::Metadata,
    ensure,
    outcome::{Outcome, Stop},
    verdict::Status,
};

/// The tests that run here; over the wire MD-05 is a copy anyway.
pub(super) const IN_PROCESS: &[&str] = &["SM-26", "MD-05"];

/// How long an unready node is watched.
const UNREADY: Duration = Duration::from_secs(1);

/// Flags of the hidden subcommand `reference`.
#[derive(Debug, Clone, Args)]
pub struct ReferenceFlags {
    /// Break this rule first
    #[arg(long, default_value = "")]
    mutant: String,
}

/// Runs both tests; a line for each failure, exit code 1 if there was one.
pub(super) async fn run(flags: &ReferenceFlags) -> Result<u8, Error> {
    mutant::set(Mutant::ALL.iter().copied().find(|mutant| mutant.name() == flags.mutant));
    let mut code = 0;
    for (id, outcome) in [("SM-26", sm_26().await), ("MD-05", md_05().await)] {
        if let Err(Stop::Failed(reason) | Stop::Skipped(reason) | Stop::Short(reason)) = outcome {
            println!("{id} {reason}");
            code = 1;
        }
    }
    Ok(code)
}

/// Runs both tests in a process with this rule broken.
pub(super) async fn ask(
    program: &Path,
    mutant: Option<Mutant>,
) -> Result<Vec<(&'static str, Status)>, Error> {
    let failed = |problem: String| Error::Boot { program: program.display().to_string(), problem };
    let name = mutant.map_or("", Mutant::name);
    let output = Command::new(program)
        .args(["reference", &format!("--mutant={name}")])
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| failed(error.to_string()))?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let status = |id: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(id));
        line.map_or(Status::Passed, |reason| Status::Failed(reason.trim().to_owned()))
    };
    Ok(IN_PROCESS.iter().map(|&id| (id, status(id))).collect())
}

fn broke(error: impl std::fmt::Display) -> Stop {
    Stop::Failed(error.to_string())
}

/// A fake with one idle machine, and a shard that speaks to it.
async fn idle(options: FakeOptions) -> Outcome<(Fake, impl Provider, MachineId)> {
    let fake = Fake::new(options);
    fake.seed(&Seed { speculative: 1, ..Seed::default() }).map_err(broke)?;
    let shard = Stamped::new(fake.clone(), Identity::new("conformance-reference", 1));
    let machine = MachineId::from("spec-0");
    shard.create(&machine, None).await.map_err(broke)?;
    fake.complete_staged("spec-0");
    Ok((fake, shard, machine))
}

fn binding(metadata: Metadata) -> Configure {
    Configure { cluster: "reference".into(), blob: b"join".to_vec().into(), metadata }
}

async fn sm_26() -> Outcome {
    let staged = PerKind { configure: true, ..PerKind::default() };
    let options = FakeOptions { staged, ..FakeOptions::instant() };
    let (fake, shard, machine) = idle(options).await?;
    shard.configure(&machine, binding(Metadata::new()), None).await.map_err(broke)?;
    let end = tokio::time::Instant::now() + UNREADY;
    while tokio::time::Instant::now() < end {
        let state = shard.get(&machine, None).await.map_err(broke)?.state;
        ensure!(state == MachineState::Configuring, "{state:?} before the readiness signal");
        tokio::time::sleep(UNREADY / 50).await;
    }
    ensure!(fake.complete_staged("spec-0"), "the readiness signal found nothing to complete");
    let state = shard.get(&machine, None).await.map_err(broke)?.state;
    ensure!(state == MachineState::Configured, "{state:?} after the readiness signal");
    Ok(())
}

/// A caller that keeps the map it sent. Ownership makes it impossible to alias
/// it in our own providers, so the mutant is a reader that shows the caller's.
async fn md_05() -> Outcome {
    let (_fake, shard, machine) = idle(FakeOptions::instant()).await?;
    let sent = Metadata::from([("key".to_owned(), "as sent".to_owned())]);
    let mut own = sent.clone();
    shard.configure(&machine, binding(own.clone()), None).await.map_err(broke)?;
    own.insert("key".to_owned(), "changed".to_owned());
    own.insert("later".to_owned(), "added".to_owned());
    for _ in 0..2 {
        let mut seen = shard.get(&machine, None).await.map_err(broke)?.shard_metadata;
        if mutant::active(Mutant::MetadataAliased) {
            seen = own.clone();
        }
        ensure!(seen == sent, "the provider shows what its caller changed later: {seen:?}");
    }
    Ok(())
}
