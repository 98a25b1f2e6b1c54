//! Flags and subcommands.

use std::time::Duration;

use bigfleet_net::flags::TlsFlags;
use clap::{
    ArgAction, Args, Command as Clap, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
};

use crate::{command as cmd, duration, output::Format};

/// Shows and changes a BigFleet fleet: who owns what, why a need waits, and the brake.
#[derive(Debug, Parser)]
#[command(name = "bigfleetctl", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// host:port of the coordinator's replicas, separated by commas [default: 127.0.0.1:7790]
    #[arg(long, value_name = "ADDRS", env = "BIGFLEET_COORDINATOR")]
    pub coordinator: Option<String>,

    /// Time for one call; not for `snapshot save`
    #[arg(long, value_name = "TIME", env = "BIGFLEET_TIMEOUT", default_value = "10s",
          value_parser = duration::parse)]
    pub timeout: Duration,

    /// Form of lists [default: table]
    #[arg(short, long, value_enum, value_name = "FORMAT", env = "BIGFLEET_OUTPUT")]
    pub output: Option<Format>,

    /// Context of the configuration file ~/.config/bigfleet/config.yaml (or BIGFLEET_CONFIG)
    #[arg(long, value_name = "NAME", env = "BIGFLEET_CONTEXT")]
    pub context: Option<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for help text")]
    pub tls: TlsFlags,
}

/// What a command that changes the fleet asks for.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Consent {
    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Only show what would change
    #[arg(long)]
    pub dry_run: bool,
}

impl Consent {
    /// Whether somebody will read what would change.
    pub(crate) fn wants_plan(self) -> bool {
        !self.yes || self.dry_run
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One screen: leader, replicas, shards, shortfalls, brake, alerts
    Status(cmd::status::Args),
    /// Live full-screen view
    Top(cmd::top::Args),
    /// Needs of a shard with their verdicts
    Needs(cmd::needs::Args),
    /// Why one need is or is not satisfied
    Explain(cmd::explain::Args),
    /// Machines of a shard, or one with its history
    Machines(cmd::machines::Args),
    /// Clusters connected to a shard
    Sessions(cmd::sessions::Args),
    /// What a shard decided, and what became of it
    Decisions(cmd::decisions::Args),
    /// What one hypothetical need would get now
    Whatif(cmd::whatif::Args),

    /// Stop shards from acting; they go on deciding
    Pause(cmd::brake::Args),
    /// Let shards act again
    Resume(cmd::brake::Args),
    /// Let shards decide and log, without acting
    Shadow(cmd::brake::Args),

    /// Shards and when they last reported
    ListShards,
    /// Topology domains and the shards that own them
    ListDomainAssignments,
    /// Quota slices of each provider account
    ListQuotas,
    /// Providers of the registry
    ListProviders,
    /// Machines on their way from one shard to another
    ListTransfers,
    /// Clusters and domains that a shard has not let go of yet
    ListReleasing,
    /// The latest report of each shard
    ListShardReports(cmd::reports::Args),
    /// Give a topology domain to a shard
    AssignDomain(cmd::domains::AssignArgs),
    /// Take a topology domain from its shard
    UnassignDomain(cmd::domains::UnassignArgs),
    /// Move a topology domain from one shard to another
    MoveDomain(cmd::domains::MoveArgs),
    /// Move a cluster from one shard to another
    MoveCluster(cmd::domains::MoveClusterArgs),
    /// Forget a shard with its bindings and quota slices
    RemoveShard(cmd::shards::RemoveArgs),
    /// Set the quota slices of one provider account
    SetQuota(cmd::quotas::SetArgs),
    /// Add a provider to the registry, or change it
    UpsertProvider(cmd::providers::UpsertArgs),
    /// Take a provider out of the registry
    RemoveProvider(cmd::providers::RemoveArgs),

    /// What every coordinator replica says of itself
    RaftStatus,
    /// Take a replica out of the consensus group
    RaftRemove(cmd::raft::RemoveArgs),
    /// Backups of the coordinator
    #[command(subcommand)]
    Snapshot(cmd::snapshot::Command),
    /// End the recovery that follows a restore
    ConfirmRestore(cmd::snapshot::ConfirmArgs),

    /// Look for what is wrong, and name the fix
    Doctor(cmd::doctor::Args),
    /// Collect what a supporter needs into one file, secrets removed
    SupportBundle(cmd::bundle::Args),
    /// Print the completion script of a shell
    Completion(cmd::completion::Args),
    /// Print the version
    Version,
}

/// The whole command line: flags of every command may stand before or after it.
#[must_use]
pub fn command() -> Clap {
    let informs =
        |arg: &clap::Arg| matches!(arg.get_action(), ArgAction::Help | ArgAction::Version);
    Cli::command().mut_args(|arg| if informs(&arg) { arg } else { arg.global(true) })
}

/// Parses the process's arguments; a usage error ends it with exit code 2.
#[must_use]
pub fn parse() -> Cli {
    let mut command = command();
    let matches = command.get_matches_mut();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_sound() {
        super::command().debug_assert();
    }
}
