//! Flags of `bigfleet all-in-one`.

use std::{ffi::OsString, path::PathBuf};

use bigfleet_coordinator::flags::CoordinatorFlags;
use bigfleet_net::{
    flags::{DiagnosticFlags, LogFlags, path_parser},
    listen::{ListenAddr, MetricsAddr},
    values::id,
};
use bigfleet_shard::Options;
use clap::{Args, FromArgMatches as _, ValueEnum};

use crate::error::Error;

/// Share of a cluster's machines that one cycle may reclaim: as in a shard's flags.
const RECLAIM_CAP: f64 = 0.05;

/// Arguments of `bigfleet all-in-one`.
#[derive(Args)]
pub(crate) struct AllInOneFlags {
    /// gRPC address of the shard
    #[arg(long, value_name = "ADDR", default_value = ":7780")]
    pub(super) shard_listen: ListenAddr,

    /// gRPC address of the coordinator
    #[arg(long, value_name = "ADDR", default_value = ":7790")]
    pub(super) coordinator_listen: ListenAddr,

    /// Address of the coordinator's consensus transport
    #[arg(long, value_name = "ADDR", default_value = ":7791")]
    raft_bind: ListenAddr,

    /// HTTP address of the shard's metrics and probes; 0 disables
    #[arg(long, value_name = "ADDR", default_value = ":8780")]
    pub(super) shard_metrics_addr: MetricsAddr,

    /// HTTP address of the coordinator's metrics and probes; 0 disables, that of the shard
    /// serves both at once
    #[arg(long, value_name = "ADDR", default_value = ":8790")]
    pub(super) coordinator_metrics_addr: MetricsAddr,

    /// Directory of all that is kept: coord and shard under it
    #[arg(long, value_name = "DIR", default_value = "./bigfleet-data", value_parser = path_parser())]
    pub(super) data_dir: PathBuf,

    /// Id of the shard
    #[arg(long, value_name = "ID", default_value = "shard-0", value_parser = shard_id)]
    shard_id: String,

    /// Id of the coordinator
    #[arg(long, value_name = "ID", default_value = "node-1", value_parser = node_id)]
    coordinator_id: String,

    /// Machines to start with
    #[arg(long, value_name = "SEED", default_value = "dev")]
    pub(super) seed: Seed,

    #[command(flatten)]
    pub(super) log: LogFlags,

    #[command(flatten)]
    pub(super) diagnostics: DiagnosticFlags,
}

/// Machines to start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Seed {
    /// 8 idle machines with GPUs, 8 without
    Dev,
    /// None
    None,
}

fn shard_id(text: &str) -> Result<String, String> {
    id(text, "shard", "shard-0")
}

fn node_id(text: &str) -> Result<String, String> {
    id(text, "replica", "node-1")
}

impl AllInOneFlags {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.data_dir.as_os_str().is_empty() {
            return Err(bigfleet_shard::process::Error::from(
                bigfleet_shard::flags::Error::NoDataDir,
            )
            .into());
        }
        Ok(())
    }

    /// A shard with its rails on.
    pub(super) fn shard(&self) -> Options {
        Options {
            id: self.shard_id.clone(),
            reclaim_cap_fraction: Some(RECLAIM_CAP),
            empty_rollup_guard: true,
            ..Options::default()
        }
    }

    /// A single replica with the defaults of its own flags, whatever the environment says.
    pub(super) fn coordinator(&self) -> Result<CoordinatorFlags, Error> {
        let mut args: Vec<OsString> = [
            "coordinator".to_owned(),
            "--bootstrap=true".to_owned(),
            format!("--id={}", self.coordinator_id),
            format!("--listen={}", self.coordinator_listen),
            format!("--raft-bind={}", self.raft_bind),
            "--tls-cert=".to_owned(),
            "--tls-key=".to_owned(),
            "--tls-ca=".to_owned(),
            "--require-tls=false".to_owned(),
            "--metrics-addr=0".to_owned(),
            "--log-level=info".to_owned(),
            "--log-format=text".to_owned(),
            "--debug-endpoints=false".to_owned(),
            "--otlp-endpoint=".to_owned(),
        ]
        .map(OsString::from)
        .into();
        if unspecified(&self.raft_bind) && self.raft_bind.port() != 0 {
            args.push(format!("--raft-advertise=127.0.0.1:{}", self.raft_bind.port()).into());
        }
        args.extend([OsString::from("--data-dir"), self.data_dir.join("coord").into()]);
        let command = CoordinatorFlags::augment_args(clap::Command::new("coordinator"));
        let matches = command.try_get_matches_from(args).map_err(Error::Flags)?;
        CoordinatorFlags::from_arg_matches(&matches).map_err(Error::Flags)
    }
}

fn unspecified(addr: &ListenAddr) -> bool {
    let any = |ip: std::net::IpAddr| ip.is_unspecified();
    addr.host().is_empty() || addr.host().parse().is_ok_and(any)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Binary {
        #[command(flatten)]
        flags: AllInOneFlags,
    }

    fn parse(args: &[&str]) -> AllInOneFlags {
        Binary::try_parse_from(["x"].iter().chain(args)).unwrap().flags
    }

    #[test]
    fn flags_are_those_of_the_chapter() {
        let command = Binary::command();
        let default = |name: &str| {
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name)).unwrap();
            arg.get_default_values()[0].to_str().unwrap().to_owned()
        };
        for (name, value) in [
            ("shard-listen", ":7780"),
            ("coordinator-listen", ":7790"),
            ("raft-bind", ":7791"),
            ("shard-metrics-addr", ":8780"),
            ("coordinator-metrics-addr", ":8790"),
            ("data-dir", "./bigfleet-data"),
            ("shard-id", "shard-0"),
            ("coordinator-id", "node-1"),
            ("seed", "dev"),
        ] {
            assert_eq!(default(name), value, "{name}");
        }
    }

    #[test]
    fn parts_are_set_up_as_the_chapter_says() {
        let flags = parse(&[]);
        let coordinator = flags.coordinator().unwrap();
        coordinator.check().unwrap();
        let at: SocketAddr = "[::]:7791".parse().unwrap();
        assert_eq!(coordinator.consensus(at, at).raft_address, "127.0.0.1:7791");
        assert_eq!(coordinator.data_dir, PathBuf::from("./bigfleet-data/coord"));
        assert!(coordinator.raft.bootstrap && coordinator.join_addr().is_none());
        let shard = flags.shard();
        assert_eq!((shard.reclaim_cap_fraction, shard.empty_rollup_guard), (Some(0.05), true));
        let elsewhere = parse(&["--raft-bind=10.0.0.1:5"]).coordinator().unwrap();
        assert_eq!(elsewhere.consensus(at, at).raft_address, "10.0.0.1:7791");
        assert!(parse(&["--data-dir="]).check().is_err());
    }
}
