//! Flags of `bigfleet-provider-ec2`.

use std::path::PathBuf;

use bigfleet_provider_kit::flags::{ProviderFlags, path_parser};
use clap::Parser;

/// Machines of an EC2-like API
///
/// Credentials come by environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for a
/// role, AWS_SESSION_TOKEN.
#[derive(Clone, Debug, Parser)]
#[command(name = "bigfleet-provider-ec2", version)]
pub struct Ec2Flags {
    /// Those of every provider.
    #[command(flatten)]
    pub provider: ProviderFlags,

    /// Where the cloud is reached.
    #[command(flatten)]
    pub cloud: CloudFlags,
}

/// `--…-endpoint`, `--config`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cloud")]
pub struct CloudFlags {
    /// URL of the query API
    #[arg(long, value_name = "URL", default_value = "")]
    pub ec2_endpoint: String,

    /// URL of the price list; empty relies on the prices pinned in --config
    #[arg(long, value_name = "URL", default_value = "")]
    pub pricing_endpoint: String,

    /// URL of the command channel, which hands blobs to hosts
    #[arg(long, value_name = "URL", default_value = "")]
    pub command_endpoint: String,

    /// URL of the event queue; empty notices interruptions by sweeps alone
    #[arg(long, value_name = "URL", default_value = "")]
    pub queue_endpoint: String,

    /// Offerings and account settings, in YAML
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    pub config: PathBuf,
}

/// Flags that do not go together.
#[derive(Debug, thiserror::Error)]
#[error("{flag}: {problem}")]
pub struct FlagError {
    flag: &'static str,
    problem: &'static str,
}

impl Ec2Flags {
    /// Simulation is never a fallback: it is asked for, or an endpoint is given.
    pub fn check(&self) -> Result<(), FlagError> {
        let refuse = |flag, problem| Err(FlagError { flag, problem });
        let cloud = &self.cloud;
        if self.provider.use_fake_backend {
            if !cloud.ec2_endpoint.is_empty() || !cloud.config.as_os_str().is_empty() {
                let problem = "goes with no --ec2-endpoint and no --config; drop it, or drop them";
                return refuse("--use-fake-backend", problem);
            }
            return Ok(());
        }
        if cloud.ec2_endpoint.is_empty() {
            let problem =
                "none given; name the API's URL, or ask for a simulation by --use-fake-backend";
            return refuse("--ec2-endpoint", problem);
        }
        if cloud.command_endpoint.is_empty() {
            let problem = "none given; hosts are bootstrapped through it";
            return refuse("--command-endpoint", problem);
        }
        if cloud.config.as_os_str().is_empty() {
            return refuse("--config", "none given; it says what to offer");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str]) -> Result<(), String> {
        let args = std::iter::once("ec2").chain(args.iter().copied());
        let flags: Ec2Flags = bigfleet_provider_kit::flags::try_parse_from(args).unwrap();
        flags.check().map_err(|error| error.to_string())
    }

    #[test]
    fn never_a_simulation_unasked() {
        let refused = check(&[]).unwrap_err();
        assert!(refused.contains("--ec2-endpoint") && refused.contains("--use-fake-backend"));
        check(&["--use-fake-backend"]).unwrap();
        let both = check(&["--use-fake-backend", "--ec2-endpoint=http://x"]).unwrap_err();
        assert!(both.contains("--use-fake-backend"), "{both}");
    }

    #[test]
    fn a_cloud_needs_its_channel_and_its_offerings() {
        let ec2 = "--ec2-endpoint=http://x";
        assert!(check(&[ec2]).unwrap_err().contains("--command-endpoint"));
        let command = "--command-endpoint=http://x";
        assert!(check(&[ec2, command]).unwrap_err().contains("--config"));
        check(&[ec2, command, "--config=f"]).unwrap();
    }
}
