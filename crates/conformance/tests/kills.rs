//! Random kills of the kit's fault target (provider chapter §12, invariants 2
//! and 3): what was acknowledged is found again, and the cloud holds exactly the
//! hosts that are on record. `BIGFLEET_KILLS` says how many, `BIGFLEET_SEED`
//! replays.

#![cfg(feature = "self-test")]
#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use bigfleet_conformance::{
    kill::Harness,
    random::Random,
    shard::Shard,
    target::{Instance, TargetCommand},
    tls::Credentials,
    trace::Trace,
};
use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineState};
use tokio::time::{Instant, sleep};

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn fault_target() -> TargetCommand {
    let program = env!("CARGO_BIN_EXE_bigfleet-conformance");
    TargetCommand::parse(&format!(
        "'{program}' serve fault --addr={{addr}} --state={{state}} --seed-count={{seed}} \
         --log-level=warn"
    ))
    .expect("a command")
}

/// The fleet, when nothing is in transition or waits for repair any more.
async fn at_rest(instance: &Instance) -> Vec<Machine> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let list = instance.wire().list(ListFilter::default()).await.expect("a list");
        let resting = |machine: &Machine| {
            matches!(
                machine.state(),
                MachineState::Speculative | MachineState::Idle | MachineState::Configured
            )
        };
        if list.machines.iter().all(resting) {
            return list.machines;
        }
        assert!(Instant::now() < deadline, "the fleet does not come to rest");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_inv_02_and_03_hold_under_random_kills() {
    let kills = from_environment("BIGFLEET_KILLS", 25);
    let seed = from_environment("BIGFLEET_SEED", 1);
    println!("{kills} kills, replay with BIGFLEET_SEED={seed}");
    let instance = Instance::boot(&fault_target(), Arc::new(Credentials::Plaintext), 64, 1.0)
        .await
        .expect("the target boots");
    let trace = Trace::default();
    let random = Random::new(seed, "kills");
    let mut harness = Harness::new(instance, random, Shard::new("kills"), trace.clone());
    for round in 0..kills {
        if let Err(stop) = harness.round().await {
            let calls: Vec<_> = trace.calls().iter().map(ToString::to_string).collect();
            let last = &calls[calls.len().saturating_sub(40)..];
            panic!("seed {seed}, kill {round}: {stop:?}\n{}", last.join("\n"));
        }
    }
    println!("{:?}", harness.figures());
    assert!(harness.figures().acknowledged > 0, "nothing was acknowledged");

    let instance = harness.into_instance();
    let recorded: BTreeSet<_> = at_rest(&instance)
        .await
        .into_iter()
        .filter(|machine| machine.host.is_some())
        .map(|machine| machine.id)
        .collect();
    // One file a host: `<slot>@<operation>`.
    let held: Vec<String> = fs::read_dir(instance.state().join("cloud"))
        .expect("the cloud's truth")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .map(|name| name.split('@').next().unwrap_or_default().to_owned())
        .collect();
    let slots: BTreeSet<_> = held.iter().cloned().collect();
    assert_eq!(held.len(), slots.len(), "a slot has two hosts: {held:?}");
    assert_eq!(slots, recorded, "hosts in the cloud and on record differ");
}
