//! Flags of `bigfleet coordinator` (coordinator chapter §2).
//!
//! Each can be set by environment: `BIGFLEET_` and its name in capitals.

mod rebalance;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use bigfleet_net::{
    flags::{DiagnosticFlags, LogFlags, MetricsFlags, TlsFlags, path_parser},
    grpc,
    listen::ListenAddr,
    values::{above_zero, id, positive},
};
use clap::{ArgAction, Args, builder::BoolishValueParser};
pub use rebalance::RebalanceFlags;

use crate::{
    backup::ExportOptions,
    consensus::{Compaction, Config, Timers},
    reports::LivenessLimits,
    state::MAX_KIND,
};

/// HTTP port of a coordinator.
pub const METRICS_PORT: u16 = 8790;

/// Replicas below which a fleet with `--join-addr` could lose an older one's quorum.
const FEWEST_REPLICAS: usize = 3;

/// To parse by itself or to flatten into other flags.
#[derive(Clone, Debug, Args)]
pub struct CoordinatorFlags {
    /// gRPC address
    #[arg(long, value_name = "ADDR", default_value = ":7790")]
    pub listen: ListenAddr,

    /// `--metrics-addr`.
    #[command(flatten)]
    pub metrics: MetricsFlags<METRICS_PORT>,

    /// Stable id of this replica: 1 to 253 of A-Z a-z 0-9 . _ -; with --join-addr it ends in
    /// -ORDINAL
    #[arg(long, value_name = "ID", default_value = "node-1", value_parser = node_id)]
    pub id: String,

    /// Directory of the log and of snapshots; created if absent
    #[arg(long, value_name = "DIR", default_value = "./coord-data", value_parser = path_parser())]
    pub data_dir: PathBuf,

    /// Consensus.
    #[command(flatten)]
    pub raft: RaftFlags,

    /// Backups.
    #[command(flatten)]
    pub export: ExportFlags,

    /// Rebalancing.
    #[command(flatten)]
    pub rebalance: RebalanceFlags,

    /// A shard is Live up to this age of its last report, then Stale
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive)]
    pub shard_stale_after: Duration,

    /// A shard is Stale up to this age of its last report, then Expired
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = positive)]
    pub shard_expire_after: Duration,

    /// `--tls-…`.
    #[command(flatten)]
    pub tls: TlsFlags,

    /// `--log-…`.
    #[command(flatten)]
    pub log: LogFlags,

    /// `--debug-endpoints`, `--otlp-endpoint`.
    #[command(flatten)]
    pub diagnostics: DiagnosticFlags,
}

/// How a replica finds the others and forms a fleet with them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Consensus")]
pub struct RaftFlags {
    /// Address of the consensus transport
    #[arg(long, value_name = "ADDR", default_value = ":7791")]
    pub raft_bind: ListenAddr,

    /// Address under which other replicas dial the consensus transport, resolved at each dial
    /// [default: that of --raft-bind]
    #[arg(long, value_name = "ADDR", default_value = "", hide_default_value = true)]
    pub raft_advertise: String,

    /// Address under which clients are sent to this replica when it leads [default: host of
    /// --raft-advertise, port of --listen]
    #[arg(long, value_name = "ADDR", default_value = "", hide_default_value = true)]
    pub grpc_advertise: String,

    /// Form a fleet if the data directory is empty; with --join-addr only ordinal 0 does, so it
    /// may be left on
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub bootstrap: bool,

    /// host:port of all replicas, one headless name or several separated by commas; empty for a
    /// single replica
    #[arg(long, value_name = "ADDR", default_value = "")]
    pub join_addr: String,

    /// Replicas that a fleet opens with; at least 3 with --join-addr
    #[arg(
        long, value_name = "N", default_value_t = 3,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=5)
    )]
    pub initial_replicas: usize,

    /// Form and open a fleet alone: your word that no other one exists
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub force_bootstrap: bool,

    /// Multiplies heartbeat, election timeout and lease, 1 to 20, for slow disks and zones far
    /// apart
    #[arg(
        long, value_name = "FACTOR", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=20)
    )]
    pub raft_timer_scale: u32,
}

/// `--snapshot-export-…`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Backups")]
pub struct ExportFlags {
    /// Directory of the leader's backups; empty for none
    #[arg(long, value_name = "DIR", default_value = "", value_parser = path_parser())]
    pub snapshot_export_dir: PathBuf,

    /// Time between two backups
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = positive)]
    pub snapshot_export_interval: Duration,

    /// Backups that are kept; older ones are pruned
    #[arg(long, value_name = "N", default_value_t = 288, value_parser = above_zero)]
    pub snapshot_export_retain: usize,
}

impl ExportFlags {
    /// What the flags ask for, if anything.
    #[must_use]
    pub fn options(&self) -> Option<ExportOptions> {
        let dir = self.snapshot_export_dir.clone();
        let wanted = !dir.as_os_str().is_empty();
        wanted.then_some(ExportOptions {
            dir,
            interval: self.snapshot_export_interval,
            retain: self.snapshot_export_retain,
        })
    }
}

fn node_id(text: &str) -> Result<String, String> {
    id(text, "replica", "coordinator-0")
}

/// Flags that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to keep the log in.
    #[error("--data-dir: empty; give a directory that survives restarts")]
    NoDataDir,

    /// Replicas of one fleet are numbered.
    #[error(
        "--id {id:?}: with --join-addr it must end in -<ordinal>, as the pods of a StatefulSet do, \
         for example coordinator-0"
    )]
    NoOrdinal {
        /// The id.
        id: String,
    },

    /// Too few to be safe.
    #[error(
        "--initial-replicas {given}: with --join-addr at least 3; a single replica has no \
         --join-addr"
    )]
    TooFewReplicas {
        /// The number.
        given: usize,
    },

    /// An address that nobody can dial.
    #[error("{flag} {given:?}: {problem}; give host:port as the other replicas reach it")]
    Address {
        /// The flag.
        flag: &'static str,
        /// Its value.
        given: String,
        /// What is wrong with it.
        problem: String,
    },

    /// A shard that is expired before it is stale.
    #[error("--shard-expire-after must be longer than --shard-stale-after")]
    ExpiresTooSoon,

    /// A machine could go back before anybody saw that it came.
    #[error(
        "--rebalance-cooldown must be longer than --rebalance-interval and the report interval \
         of 10s together; raise it above {least:?}"
    )]
    CooldownTooShort {
        /// What it must exceed.
        least: Duration,
    },
}

impl CoordinatorFlags {
    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<(), Error> {
        let raft = &self.raft;
        if self.data_dir.as_os_str().is_empty() {
            return Err(Error::NoDataDir);
        }
        if !raft.join_addr.is_empty() {
            if !has_ordinal(&self.id) {
                return Err(Error::NoOrdinal { id: self.id.clone() });
            }
            if raft.initial_replicas < FEWEST_REPLICAS {
                return Err(Error::TooFewReplicas { given: raft.initial_replicas });
            }
            for one in raft.join_addr.split(',') {
                dialable("--join-addr", one.trim())?;
            }
            match &*raft.raft_advertise {
                // Peers would be told to dial themselves.
                "" => dialable("--raft-advertise", &raft.raft_bind.to_string())?,
                given => dialable("--raft-advertise", given)?,
            }
        }
        if !raft.grpc_advertise.is_empty() {
            dialable("--grpc-advertise", &raft.grpc_advertise)?;
        }
        if self.shard_expire_after <= self.shard_stale_after {
            return Err(Error::ExpiresTooSoon);
        }
        self.rebalance.check()
    }

    /// `--join-addr`, if there is one.
    #[must_use]
    pub fn join_addr(&self) -> Option<&str> {
        Some(&*self.raft.join_addr).filter(|addr| !addr.is_empty())
    }

    /// When shards are stale and expired.
    #[must_use]
    pub fn liveness(&self) -> LivenessLimits {
        LivenessLimits {
            stale_after: self.shard_stale_after,
            expire_after: self.shard_expire_after,
        }
    }

    /// How this replica takes part, once it is known where it listens.
    #[must_use]
    pub fn consensus(&self, grpc: SocketAddr, raft: SocketAddr) -> Config {
        let flags = &self.raft;
        let raft_address = match &*flags.raft_advertise {
            "" => join(flags.raft_bind.host(), raft.port()),
            given => given.to_owned(),
        };
        let host = raft_address.rsplit_once(':').map_or("", |(host, _)| host);
        let grpc_address = match &*flags.grpc_advertise {
            "" => format!("{host}:{}", grpc.port()),
            given => given.to_owned(),
        };
        Config {
            node_id: self.id.clone(),
            raft_address,
            grpc_address,
            max_kind: MAX_KIND,
            bootstrap: flags.bootstrap,
            force_bootstrap: flags.force_bootstrap,
            initial_replicas: flags.initial_replicas,
            timers: Timers::scaled(flags.raft_timer_scale),
            compaction: Compaction::default(),
        }
    }
}

fn has_ordinal(id: &str) -> bool {
    id.rsplit_once('-').is_some_and(|(_, ordinal)| ordinal.parse::<usize>().is_ok())
}

fn dialable(flag: &'static str, given: &str) -> Result<(), Error> {
    let refused = |problem: String| Error::Address { flag, given: given.to_owned(), problem };
    let addr: ListenAddr = given.parse().map_err(|_| refused("not host:port".to_owned()))?;
    let unspecified = |ip: std::net::IpAddr| ip.is_unspecified();
    if addr.host().is_empty() || addr.host().parse().is_ok_and(unspecified) {
        return Err(refused("it names no host".to_owned()));
    }
    grpc::check_address(given).map_err(|error| refused(error.to_string()))
}

fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
