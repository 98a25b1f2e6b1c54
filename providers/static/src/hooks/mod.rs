//! Executables that do to a machine what the protocol asks for.

mod process;
mod redact;
mod tail;

use std::{fmt, fs, io, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use bigfleet_provider_kit::{CloudError, Machine, Op};
use serde::Serialize;

use crate::{
    inventory::{Bmc, Inventory},
    spool::Spool,
};

/// One of the six.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    PowerOn,
    PowerOff,
    Install,
    Drain,
    Wipe,
    Status,
}

impl Hook {
    const ALL: [Self; 6] =
        [Self::PowerOn, Self::PowerOff, Self::Install, Self::Drain, Self::Wipe, Self::Status];

    /// The file's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PowerOn => "power-on",
            Self::PowerOff => "power-off",
            Self::Install => "install",
            Self::Drain => "drain",
            Self::Wipe => "wipe",
            Self::Status => "status",
        }
    }

    /// Without these, one cluster's data would reach the next.
    const fn is_required(self) -> bool {
        matches!(self, Self::Install | Self::Drain | Self::Wipe)
    }

    pub(crate) fn exists(self, directory: &Path) -> bool {
        directory.join(self.name()).exists()
    }

    /// Whether all that are there, and those that must be, can be run.
    pub(crate) fn check_all(directory: &Path) -> Result<(), String> {
        for hook in Self::ALL {
            let path = directory.join(hook.name());
            match fs::metadata(&path) {
                Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => {}
                Ok(_) => return Err(format!("{}: make it an executable file", path.display())),
                Err(error) if error.kind() == io::ErrorKind::NotFound && !hook.is_required() => {}
                Err(error) => {
                    let path = path.display();
                    return Err(format!("{path}: {error}; install, drain and wipe must be there"));
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a hook reads from its standard input.
#[derive(Serialize)]
struct Input<'a> {
    machine: MachineInput<'a>,
    operation: OperationInput<'a>,
}

#[derive(Serialize)]
struct MachineInput<'a> {
    id: &'a str,
    host: &'a str,
    instance_type: &'a str,
    zone: &'a str,
    labels: &'a std::collections::BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bmc: Option<&'a Bmc>,
}

#[derive(Serialize)]
struct OperationInput<'a> {
    id: &'a str,
    kind: &'a str,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_seconds: Option<u64>,
    timeout_seconds: u64,
}

/// One transition of one machine, for the hooks that carry it out.
pub(crate) struct Errand<'a> {
    pub(crate) op: &'a Op,
    pub(crate) kind: &'static str,
    pub(crate) machine: &'a Machine,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) grace: Option<Duration>,
}

/// How a hook ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Done,
    /// Exit code 75.
    Again(String),
    Failed(String),
    /// Stopped at its limit.
    Overran(String),
}

impl Ran {
    /// As a cloud answers.
    pub(crate) fn or_error(self) -> Result<(), CloudError> {
        match self {
            Self::Done => Ok(()),
            Self::Again(problem) => Err(CloudError::Retry(problem)),
            Self::Failed(problem) | Self::Overran(problem) => Err(CloudError::Fatal(problem)),
        }
    }
}

/// Runs them.
#[derive(Debug)]
pub(crate) struct Hooks {
    pub(crate) spool: Spool,
}

impl Hooks {
    /// Runs one to its end, its limit or the errand's cancellation.
    pub(crate) async fn run(
        &self,
        hook: Hook,
        errand: &Errand<'_>,
        limit: Duration,
        blob: Option<&[u8]>,
    ) -> Ran {
        let input = match serde_json::to_vec(&input(errand, limit)) {
            Ok(input) => input,
            Err(error) => return Ran::Failed(format!("{hook} hook: {error}")),
        };
        let call = process::Call {
            hook,
            path: errand.inventory.hooks_dir.join(hook.name()),
            spool: &self.spool,
            input: &input,
            blob,
            limit,
        };
        let ran = call.run(errand.op).await;
        tracing::debug!(machine = %errand.machine.id, operation = %errand.op.id, %hook, ?ran, "hook ended");
        ran
    }

    /// [`Hooks::run`] for a hook that need not be there.
    pub(crate) async fn run_if_any(&self, hook: Hook, errand: &Errand<'_>) -> Ran {
        if !hook.exists(&errand.inventory.hooks_dir) {
            return Ran::Done;
        }
        self.run(hook, errand, errand.inventory.hook_timeout, None).await
    }
}

fn input<'a>(errand: &'a Errand<'_>, limit: Duration) -> Input<'a> {
    let machine = errand.machine;
    let entry = errand.inventory.entry(&machine.id);
    Input {
        machine: MachineInput {
            id: &machine.id,
            host: machine.host.as_ref().map(|host| host.reference.as_str()).unwrap_or_default(),
            instance_type: &machine.class.instance_type,
            zone: &machine.class.zone,
            labels: &machine.class.labels,
            bmc: entry.and_then(|entry| entry.bmc.as_ref()),
        },
        operation: OperationInput {
            id: errand.op.id.as_str(),
            kind: errand.kind,
            attempt: errand.op.attempt,
            cluster: machine.cluster.as_deref(),
            grace_seconds: errand.grace.map(|grace| grace.as_secs()),
            timeout_seconds: limit.as_secs(),
        },
    }
}

#[cfg(test)]
mod tests;
