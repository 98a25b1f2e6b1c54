//! Flags of `bigfleet-provider-static`.

use std::{path::PathBuf, time::Duration};

use bigfleet_provider_kit::{
    config::Timeouts,
    flags::{ProviderFlags, path_parser},
};
use clap::Parser;

use crate::{
    cloud::{Prepared, StaticCloud},
    fake,
    hooks::Hook,
    inventory::{Inventory, InventoryError},
    shelf,
};

/// A node that was installed gets this long to become Ready.
const READINESS: Duration = Duration::from_secs(5 * 60);

/// Bare metal from an inventory file, brought into clusters by executables
#[derive(Clone, Debug, Parser)]
#[command(
    name = "bigfleet-provider-static",
    version,
    // As the inventory says.
    mut_arg("provider", |arg| arg.default_value(""))
)]
pub struct StaticFlags {
    /// Those of every provider; `--provider` is the inventory's unless given.
    #[command(flatten)]
    pub provider: ProviderFlags,

    /// Machines and hooks, in YAML; read again when it changes
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    pub inventory: PathBuf,
}

/// Why these flags serve nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlagError {
    /// Neither.
    #[error("give --inventory FILE, or --use-fake-backend for machines that do not exist")]
    Nothing,

    /// Both.
    #[error("--inventory and --use-fake-backend exclude each other; drop one")]
    Both,

    /// Two names.
    #[error(
        "--provider {flag:?} is not the inventory's {file:?}; leave the flag out, or make them equal"
    )]
    Provider {
        /// By the flag.
        flag: String,
        /// By the file.
        file: String,
    },

    /// The file.
    #[error("--inventory {0}")]
    Inventory(#[from] InventoryError),
}

impl StaticFlags {
    /// Reads the inventory, and lets it complete the common flags.
    pub fn prepare(&self) -> Result<(ProviderFlags, Prepared), FlagError> {
        let mut common = self.provider.clone();
        let given = !self.inventory.as_os_str().is_empty();
        match (given, common.use_fake_backend) {
            (false, false) => Err(FlagError::Nothing),
            (true, true) => Err(FlagError::Both),
            (false, true) => {
                if common.provider.is_empty() {
                    "static".clone_into(&mut common.provider);
                }
                let inventory = fake::inventory(common.provider.clone(), common.seed_count);
                Ok((common, StaticCloud::simulated(inventory)))
            }
            (true, false) => {
                // From before the load: a change in between is seen as one.
                let seen = shelf::stamp(&self.inventory);
                let inventory = Inventory::load(&self.inventory)?;
                if common.provider.is_empty() {
                    common.provider.clone_from(&inventory.provider);
                } else if common.provider != inventory.provider {
                    let (flag, file) = (common.provider, inventory.provider);
                    return Err(FlagError::Provider { flag, file });
                }
                leave_time(&mut common, inventory.hook_timeout);
                let spool = self.spool(&common.provider);
                let observes_ready = Hook::Status.exists(&inventory.hooks_dir);
                let file = (self.inventory.clone(), seen);
                Ok((common, StaticCloud::real(inventory, file, spool, observes_ready)))
            }
        }
    }

    /// In the state; without one, where the next start finds it all the same.
    fn spool(&self, provider: &str) -> PathBuf {
        match self.provider.state.as_os_str().is_empty() {
            false => self.provider.state.join("blobs"),
            true => std::env::temp_dir().join(format!("bigfleet-provider-static-{provider}")),
        }
    }
}

/// A transition that ends before its hook may would fail what the inventory allows.
fn leave_time(flags: &mut ProviderFlags, hook: Duration) {
    let timeouts = &mut flags.timeouts;
    if timeouts.transition_timeout.is_some() {
        return;
    }
    let default = Timeouts::default();
    timeouts.create_timeout.get_or_insert_with(|| default.create.max(hook));
    timeouts.configure_timeout.get_or_insert_with(|| default.configure.max(hook + READINESS));
    timeouts.drain_timeout.get_or_insert_with(|| default.drain.max(hook + READINESS));
    timeouts.delete_timeout.get_or_insert_with(|| default.delete.max(hook + READINESS));
}

#[cfg(test)]
mod tests {
    use bigfleet_provider_kit::flags::try_parse_from;

    use super::*;

    fn parse(args: &[&str]) -> StaticFlags {
        try_parse_from(std::iter::once("static").chain(args.iter().copied())).unwrap()
    }

    #[test]
    fn one_source_of_machines_is_needed() {
        assert!(matches!(parse(&[]).prepare(), Err(FlagError::Nothing)));
        let both = parse(&["--inventory=x", "--use-fake-backend"]).prepare();
        assert!(matches!(both, Err(FlagError::Both)));
        let error = parse(&["--inventory=/nowhere.yaml"]).prepare().map(drop).unwrap_err();
        assert!(error.to_string().starts_with("--inventory /nowhere.yaml: file: "), "{error}");
    }

    #[test]
    fn a_simulated_backend_has_a_name_of_its_own() {
        let (common, _) = parse(&["--use-fake-backend"]).prepare().unwrap();
        assert_eq!(common.provider, "static");
        assert_eq!(common.timeouts.timeouts(), Timeouts::default());
    }

    #[test]
    fn hooks_get_their_time_unless_flags_say_otherwise() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let mut common = parse(&["--drain-timeout=1m"]).provider;
        leave_time(&mut common, minutes(30));
        let timeouts = common.timeouts.timeouts();
        assert_eq!((timeouts.configure, timeouts.drain), (minutes(35), minutes(1)));
        let mut common = parse(&["--transition-timeout=2s"]).provider;
        leave_time(&mut common, minutes(30));
        assert_eq!(common.timeouts.timeouts(), Timeouts::all(Duration::from_secs(2)));
    }
}
