//! The fault target (provider chapter §11, Failure and Strict): a small cloud
//! on the kit whose faults are driven by the wire alone, so that the suite
//! needs no door of its own. `bigfleet-provider-fault` serves it.
//!
//! # Flags
//!
//! All of every provider binary ([`ProviderFlags`](crate::flags::ProviderFlags)), with
//! other defaults where a test must not wait: `--seed-count` 64, `--transition-timeout`
//! 2s, `--sweep-interval` 500ms, `--failed-hold` 8s, `--provider` `fault`,
//! `--metrics-addr` 0, `--max-metadata-keys` 1024 and `--max-metadata-bytes` 4 MiB, so
//! that large maps are echoed and not refused. With the feature `mutants` also `--mutant NAME`
//! (see [`Mutant::name`](bigfleet_provider::mutant::Mutant::name); empty = sound).
//! `--state DIR` keeps the store in `DIR` and the cloud's own truth, one file a
//! host, in `DIR/cloud`: both outlive `kill -9`.
//!
//! # Slots
//!
//! `--seed-count` sound slots `spec-<n>`: ON_DEMAND and every fourth SPOT, three
//! zones, no label of the key below. Beside them 8 slots each of the values below
//! of label `conformance.fault/create` (ids `fault-<value>-<n>`); a test that does
//! not ask for them stays away from every slot that has the key:
//!
//! | Value | Effect |
//! |---|---|
//! | `error` | Create fails at once: FAILED with text |
//! | `late` | Create ignores its cancellation and brings a host 1 s after the timeout: FAILED, the host appears on the record, repair destroys it |
//! | `vanish` | Create succeeds; 300 ms later the host is gone from the cloud: I → S within three sweeps |
//! | `slow` | Create, Drain and Delete take three quarters of the transition timeout each, across restarts: for kills in mid-transition |
//! | `stock-out` | Create answers OutOfStock: FAILED, repaired after min(60 s, `--failed-hold`) |
//! | `panic` | Create panics in the cloud: FAILED with text, the process lives |
//! | `ok` | sound; for tests that want to see the cloud's truth |
//!
//! Slots with the key also carry label `conformance.fault/hosts`: how many hosts the
//! cloud really holds for this slot (`0`, `1`; `2` is a leak), as of the last sweep.
//! That is the truth that "one host" and "no host leaked" are checked against. A
//! change of it bumps the revision of that record, like any fresh label.
//!
//! # Clusters
//!
//! Configure to one of these names; any other cluster is sound (joined and Ready
//! after 50 ms, as every sound call takes).
//!
//! | `cluster_id` | Effect |
//! |---|---|
//! | `fault-error` | the cloud refuses the bootstrap: FAILED |
//! | `fault-timeout` | hangs until cancelled: FAILED at the timeout |
//! | `fault-slow-ok` | ignores the cancellation, succeeds 1 s after the timeout: FAILED, and stays so |
//! | `fault-readiness-block` | the node never becomes Ready: FAILED at the timeout |
//! | `fault-panic` | the bootstrap panics: FAILED |
//! | `fault-drain-error` | sound; the later Drain is refused again and again (Retry) until its timeout: FAILED |
//! | `fault-drain-slow-<n>` | sound; the later Drain takes `<n>` seconds, within grace or not: with a grace of at least `<n>` it ends in I, although `<n>` is past `--transition-timeout` |
//! | `fault-vanish` | sound; 300 ms after C the host is gone: FAILED "host lost" within three sweeps |
//! | `fault-notice` | sound; at C a termination notice arrives: probability 0.99 |
//! | `fault-rebalance` | sound; at C a rebalance advice arrives: probability 0.5 |
//! | `fault-store` | sound; from the commit of C on, every commit fails for 3 s: mutations answer UNAVAILABLE, `/readyz` and the gRPC health of the service are down; then both recover by themselves |
//!
//! A drain's timeout is max(`--drain-timeout`, grace + min(2 min, `--drain-timeout`)),
//! so a 2 s target gives a drain of grace 15 s seventeen seconds.

mod cloud;
mod flags;
mod hosts;
mod store;

use std::{process::ExitCode, sync::Arc};

pub use cloud::FaultCloud;
pub use flags::FaultFlags;
pub use store::FaultStore;

use crate::{Error, flags::ProviderFlags, serve, store::Store};

/// The label that a test asks for a fault by.
pub const CREATE_LABEL: &str = "conformance.fault/create";
/// The label that tells how many hosts the cloud really holds for a slot.
pub const HOSTS_LABEL: &str = "conformance.fault/hosts";

/// Serves the fault target.
pub fn main(flags: &FaultFlags) -> ExitCode {
    if let Err(error) = flags.break_a_rule() {
        eprintln!("bigfleet-provider-fault: {error}");
        return ExitCode::from(2);
    }
    let provider = &flags.provider;
    let timeout = provider.timeouts.timeouts().create;
    let make = async || FaultCloud::open(provider.seed_count, timeout, &provider.state);
    serve::main_on("bigfleet-provider-fault", provider, store, make)
}

fn store(flags: &ProviderFlags) -> Result<Arc<dyn Store>, Error> {
    Ok(Arc::new(FaultStore::new(serve::open_store(flags)?)))
}
