//! The flags of every provider, with defaults for tests that do not want to wait.

use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};

use crate::flags::ProviderFlags;

/// Flags of `bigfleet-provider-fault`.
#[derive(Clone, Debug)]
pub struct FaultFlags {
    /// Those of every provider.
    pub provider: ProviderFlags,
    mutant: String,
}

/// A provider whose faults are driven by the wire, for the conformance suite
#[derive(Clone, Debug, Parser)]
#[command(name = "bigfleet-provider-fault", version)]
struct Plain {
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    mutant: MutantFlags,
}

#[derive(Clone, Debug, Args)]
struct MutantFlags {
    /// Break this rule; empty breaks none
    #[cfg(feature = "mutants")]
    #[arg(long, value_name = "NAME", default_value = "")]
    mutant: String,
}

impl CommandFactory for FaultFlags {
    fn command() -> Command {
        let defaults = [
            ("provider", "fault"),
            ("seed_count", "64"),
            ("transition_timeout", "2s"),
            ("sweep_interval", "500ms"),
            ("failed_hold", "8s"),
            ("metrics_addr", "0"),
            // A suite that sends more than is advised sees it echoed, not refused.
            ("max_metadata_keys", "1024"),
            ("max_metadata_bytes", "4194304"),
        ];
        defaults.into_iter().fold(Plain::command(), |command, (flag, value)| {
            command.mut_arg(flag, |arg| arg.default_value(value))
        })
    }

    fn command_for_update() -> Command {
        Self::command()
    }
}

impl FromArgMatches for FaultFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let plain = Plain::from_arg_matches(matches)?;
        #[cfg(feature = "mutants")]
        let mutant = plain.mutant.mutant;
        #[cfg(not(feature = "mutants"))]
        let mutant = String::new();
        Ok(Self { provider: plain.provider, mutant })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl FaultFlags {
    /// Breaks the rule that `--mutant` names.
    pub(super) fn break_a_rule(&self) -> Result<(), String> {
        if self.mutant.is_empty() {
            return Ok(());
        }
        #[cfg(feature = "mutants")]
        {
            use bigfleet_provider::mutant::{self, Mutant};
            let mut all = Mutant::ALL.iter().copied();
            let found = all.find(|mutant| mutant.name() == self.mutant);
            let unknown = || format!("--mutant {:?}: no such mutant", self.mutant);
            mutant::set(Some(found.ok_or_else(unknown)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn defaults_do_not_make_tests_wait() {
        let flags: FaultFlags = bigfleet_net::flags::try_parse_from(["fault"]).unwrap();
        let config = flags.provider.config();
        assert_eq!(config.timeouts.configure, Duration::from_secs(2));
        assert_eq!(config.sweep_interval, Duration::from_millis(500));
        assert_eq!(config.failed_hold, Duration::from_secs(8));
        assert_eq!((flags.provider.seed_count, config.provider.as_str()), (64, "fault"));
        let flags: FaultFlags =
            bigfleet_net::flags::try_parse_from(["fault", "--transition-timeout=30s"]).unwrap();
        assert_eq!(flags.provider.config().timeouts.drain, Duration::from_secs(30));
    }
}
