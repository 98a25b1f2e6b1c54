//! Shards that share one provider, as processes: `bigfleet shard` three times, a group of
//! three `bigfleet coordinator`, a simulated cloud, and a tap between shards and cloud
//! that writes down who asks for what (coordinator chapter §8, §9).
//!
//! Rows of the fault matrix (coordinator chapter §16) that move machines, domains or
//! clusters between shards, and where they are played; all others are in
//! `tests/coordinator`. `reports` and `state` are modules of `crates/coordinator`,
//! `holdings` of `crates/shard`, `shared` of the tests of `crates/shard-report`.
//!
//! | Fault | Here | Elsewhere |
//! |---|---|---|
//! | report delayed past a leader change, a move back, a second transfer of the same machine | | `reports::shared::step_6_a_delayed_word…`, `reports::shared::a_delayed_word_of_an_ended…`, `state/protocol`, `holdings::protocol` |
//! | domain moved A→B→C before A let go | `late::fault_domain_moved_on…` | `state/protocol`, `state/invariants::a_hold_is_never_overwritten` |
//! | leader dies at any step of a transfer | `kills::fault_leader_dies…` | `state/invariants::no_transfer_is_orphaned`, `reports::shared::a_releasing_transfer…` |
//! | donor silent mid-transfer | `kills::fault_donor_dies…`, `fallen_silent::fault_donor_silent…` | `reports::shared` (given up after its time), `shared::lending` |
//! | recipient silent mid-transfer | `kills::fault_recipient_dies…`, `fallen_silent::fault_recipient_silent…` | `state/invariants`, `shared::lending`, `reports::shared::what_is_on_its_way…` (the gauge, past its time) |
//! | shard killed with calls in flight, domain moved at once | `sharing::fault_shard_killed_with_calls_in_flight…`, `late::fault_calls_of_a_killed_shard…` | `shared::first_words`, `shared::handing_over` |
//! | one shard partitioned from the coordinator | | `tests/coordinator`: `lost_shards`; `shared::first_words` (goes on with its file) |
//! | two processes with one shard_id | `late::fault_two_processes…` | `tests/coordinator`: `lost_shards`; `shared::first_words` (the announcement) |

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod fallen_silent;
mod kills;
mod late;
mod neighbourhood;
mod oscillating;
mod sharing;
mod stock;
mod tap;
mod tiers;
mod witness;

#[allow(dead_code, reason = "the part of it that is used here")]
#[path = "../coordinator/client.rs"]
mod client;
#[path = "../rig/mod.rs"]
mod rig;
#[allow(dead_code, reason = "the part of it that is used here")]
#[path = "../shard/site.rs"]
mod site;

use rig::process;
