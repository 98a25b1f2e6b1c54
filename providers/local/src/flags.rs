//! The flags of every provider, and where its clusters are.

use std::path::PathBuf;

use bigfleet_provider_kit::flags::ProviderFlags;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, ValueEnum};

/// Flags of `bigfleet-provider-local`.
#[derive(Clone, Debug)]
pub struct LocalFlags {
    /// Those of every provider.
    pub provider: ProviderFlags,
    /// Its own.
    pub nodes: NodeFlags,
}

/// Nodes of clusters on this machine
#[derive(Clone, Debug, Parser)]
#[command(name = "bigfleet-provider-local", version)]
struct Plain {
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    nodes: NodeFlags,
}

/// `--clusters`, `--default-cluster`, `--slot-prefix`, `--kubelet`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub struct NodeFlags {
    /// Kubeconfig of a cluster as ID=PATH, repeated or separated by commas; or a file of
    /// such lines, its relative paths beside it
    #[arg(long, value_name = "ID=PATH|FILE", value_delimiter = ',')]
    pub clusters: Vec<String>,

    /// Kubeconfig for every cluster id that --clusters does not name
    #[arg(long, value_name = "PATH")]
    pub default_cluster: Option<PathBuf>,

    /// How the ids of slots, and with them the names of Nodes, begin; the provider's name
    /// unless given. Providers that share a cluster need different ones
    #[arg(long, value_name = "TEXT")]
    pub slot_prefix: Option<String>,

    /// Who keeps Nodes Ready: this process, or kwok
    #[arg(long, value_name = "WHO", value_enum, default_value_t)]
    pub kubelet: Kubelet,
}

/// Who keeps Nodes Ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Kubelet {
    /// This process posts status and Leases every 10 s.
    #[default]
    #[value(name = "self")]
    Own,
    /// kwok, which finds them by its annotation.
    Kwok,
}

impl LocalFlags {
    /// How the ids of slots begin.
    #[must_use]
    pub fn slot_prefix(&self) -> &str {
        self.nodes.slot_prefix.as_deref().unwrap_or(&self.provider.provider)
    }
}

impl CommandFactory for LocalFlags {
    fn command() -> Command {
        Plain::command().mut_arg("provider", |arg| arg.default_value("local"))
    }

    fn command_for_update() -> Command {
        Self::command()
    }
}

impl FromArgMatches for LocalFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Plain { provider, nodes } = Plain::from_arg_matches(matches)?;
        Ok(Self { provider, nodes })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_provider_kit::flags::try_parse_from;

    use super::*;

    #[test]
    fn clusters_are_repeated_or_separated() {
        let flags: LocalFlags =
            try_parse_from(["local", "--clusters=a=x,b=y", "--clusters=c=z"]).unwrap();
        assert_eq!(flags.nodes.clusters, ["a=x", "b=y", "c=z"]);
        assert_eq!(
            (flags.provider.provider.as_str(), flags.nodes.kubelet),
            ("local", Kubelet::Own)
        );
        assert_eq!(flags.slot_prefix(), "local");
        let flags: LocalFlags =
            try_parse_from(["local", "--kubelet=kwok", "--slot-prefix=a"]).unwrap();
        assert_eq!(flags.slot_prefix(), "a");
        assert_eq!(flags.nodes.kubelet, Kubelet::Kwok);
        try_parse_from::<LocalFlags>(["local", "--kubelet=other"]).unwrap_err();
    }
}
