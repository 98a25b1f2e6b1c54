//! `bigfleet coordinator` as processes: three replicas over real gRPC and mTLS, with
//! real disks, real shards and the real admin command line.
//!
//! The fault matrix (coordinator chapter §16), row by row, and where it is played. What
//! takes a simulated disk, clock or network is in `crates/coordinator` (`sim` is
//! `consensus::sim`, `log`, `reports` and `state` are its modules, the rest its
//! `tests/`); rows that move machines between shards are there and in `tests/across`.
//!
//! | Fault | Here | Elsewhere |
//! |---|---|---|
//! | leader kill -9 under load | `leaders::a_leader_killed_under_load…`, `leaders::every_shard_reports…` | `sim::leadership`, `sim::chaos` |
//! | leader cut off from peers but not shards | `partitions::fault_leader_cut_off…`, `partitions::fault_partitions_at_random` | `sim::leadership::a_leader_without_quorum…` |
//! | follower down / wiped; replica 0 wiped | `leaders::a_follower_that_is_away…`, `partitions::fault_follower_cut_off`, `wiped`, `wiped_sets` | `sim::formation::coordinator_inv_i10_any_wiped_disks…` |
//! | two processes of ordinal 0, both empty | `rivals::fault_two_processes_of_ordinal_0…` | `sim::formation::coordinator_inv_i10_two_empty…` |
//! | quorum lost | `quorum`, `forming::a_real_shard_is_listed_and_outlives…` | `sim::leadership::without_a_quorum…`; I8 in `crates/shard-report`: `trace`, `absent` |
//! | full restart, all pod IPs changed | `restarts` | `sim::leadership::a_full_restart…` |
//! | one shard partitioned from the coordinator | `lost_shards::fault_one_shard_partitioned…` | `reports::order::liveness…`; acks again: `crates/shard-report`: `instructions` |
//! | two processes with one shard_id | `lost_shards::fault_two_processes_with_one_shard_id` | `reports::order::step_3…`; the provider's word: `tests/shard/volumes`, `tests/across`: `late` |
//! | disk full / fsync error | `disks::a_follower_whose_write_fails…`, `disks::a_leader_whose_write_fails…` | `sim::leadership::a_full_disk…`, `a_failed_write…` |
//! | WAL cut at every byte of the tail; bit flip elsewhere | `disks::a_bit_that_flipped…` | `log::a_tail_cut_at_every_byte…`, `log::a_flipped_bit…` |
//! | corrupt, truncated or foreign backup | | `bigfleetctl`: `restore::fault_corrupt_truncated_or_foreign_backup`; `backup::reader` |
//! | restored from a backup, twice from one backup | `restored::fault_restored_from_an_export…` | `sim::recovery::fault_restored_from_a_backup…` |
//! | provider down after a restore | | `sim::recovery::fault_provider_down…` |
//! | old fleet left running beside a restored one | `restored` (`goes_not_back`) | `sim::recovery::fault_old_fleet_left_running…` |
//! | an old replica returns with data after a restore | `restored` | `sim::recovery::fault_an_old_replica_returns…` |
//! | report delayed past a leader change, a move back, a second transfer | | `reports::shared::step_6_a_delayed_word…`, `reports::shared::a_delayed_word_of_an_ended…`, `state/protocol` |
//! | domain moved A→B→C before A let go | | `tests/across`: `late`; `state/protocol`, `state/invariants::a_hold_is_never_overwritten` |
//! | leader dies at any step of a transfer; donor or recipient silent; shard killed with calls in flight | | `tests/across`; `state/protocol`, `state/invariants::no_transfer_is_orphaned`, `reports::shared` |
//! | mixed versions during upgrade | | `sim::formation::a_command_that_one_replica_cannot_apply…` |
//! | certificate half-rotated, expired, wrong CA, two SANs | `certificates`, `identities` | `tests/shard/mtls` |
//! | clock jump ± 1h; export dir unwritable | `disks::fault_export_dir_unwritable…` | `reports::order::liveness_by_a_clock_that_does_not_jump`, `backup::exports` |
//!
//! `BIGFLEET_BINARIES` names a directory with other binaries than those just built.
//! `BIGFLEET_LEADER_KILLS` and `BIGFLEET_REPORTS_PER_SECOND` make the kills of leaders
//! as many and the load as heavy as one likes, `BIGFLEET_PARTITIONS` the partitions.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod all_in_one;
mod brake;
mod certificates;
mod client;
mod disks;
mod flags;
mod fleet;
mod forming;
mod identities;
mod leaders;
mod load;
mod lost_shards;
mod named;
mod partitions;
mod quorum;
mod readonly;
mod restarts;
mod restored;
mod rivals;
mod shards;
mod wiped;
mod wiped_sets;

#[path = "../rig/mod.rs"]
mod rig;
