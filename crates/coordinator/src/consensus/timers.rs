//! The three consensus timers.

use std::time::Duration;

/// Heartbeat, election timeout and leader lease, scaled together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// A leader speaks this often.
    pub heartbeat: Duration,
    /// A follower that hears nothing for this long, up to twice, stands for election;
    /// until then it votes for nobody.
    pub election: Duration,
    /// A leader that reached no quorum for this long serves nobody.
    pub lease: Duration,
}

impl Timers {
    /// `--raft-timer-scale`, 1 to 20.
    #[must_use]
    pub fn scaled(scale: u32) -> Self {
        let scale = scale.clamp(1, 20);
        Self {
            heartbeat: Duration::from_millis(200) * scale,
            election: Duration::from_millis(500) * scale,
            lease: Duration::from_millis(400) * scale,
        }
    }

    /// A replica whose library has done nothing for this long, its disk hanging, neither
    /// leads nor counts: with lease and election it is replaced within twelve election
    /// timeouts. Several writes may wait for each other on a slow disk, and an election
    /// would not make it faster.
    pub(crate) fn hang(&self) -> Duration {
        self.election * 8
    }

    /// An append that is not answered by then is sent again. Longer than a disk hangs:
    /// whether the other side lives is known from its pulse.
    fn append(&self) -> Duration {
        self.election * 10
    }

    /// The library's own timers. Its elections and heartbeats are off: ours
    /// have a pre-vote and a seed, and wait for no disk. What remains of its timeouts is
    /// `heartbeat_interval`, the time of one append; `election_timeout_min`, that of one
    /// vote; and `election_timeout_max`, for which it refuses to vote after an append: as
    /// long as [`super::lease`] does after a pulse. It would want the first to be the shortest, for
    /// the sake of its heartbeats, so it is not asked to validate them.
    pub(crate) fn library(&self, trailing: u64) -> openraft::Config {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        openraft::Config {
            cluster_name: "coordinator".to_owned(),
            heartbeat_interval: millis(self.append()),
            election_timeout_min: millis(self.election) - 1,
            election_timeout_max: millis(self.election),
            install_snapshot_timeout: 60_000,
            max_payload_entries: 512,
            // A learner further back than what is kept gets a snapshot.
            replication_lag_threshold: trailing.max(512),
            snapshot_policy: openraft::SnapshotPolicy::Never,
            snapshot_max_chunk_size: 4 << 20,
            // What is kept behind a snapshot has a bound in bytes, too: `upkeep` purges.
            // Two that do would meet, and the library holds that purges only rise.
            max_in_snapshot_log_to_keep: u64::MAX,
            purge_batch_size: 1,
            enable_tick: true,
            enable_heartbeat: false,
            enable_elect: false,
            ..openraft::Config::default()
        }
    }
}

/// When the log is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// How often to look, jittered by a quarter.
    pub interval: Duration,
    /// Entries since the last snapshot that are worth a new one.
    pub entries: u64,
    /// Entries that stay behind a snapshot, so that a replica that was away
    /// for a while needs none.
    pub trailing: u64,
    /// Bytes that entries may take in memory; fewer stay behind a snapshot if they
    /// are large.
    pub bytes: usize,
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            entries: 1_024,
            trailing: 10_240,
            bytes: 64 << 20,
        }
    }
}
