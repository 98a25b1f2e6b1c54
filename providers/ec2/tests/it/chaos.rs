//! Random calls, faults and kills; then the truth is asked (provider chapter §12, 2 and 3).

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use bigfleet_wire::v1alpha1::MachineState;
use serde_json::{Value, json};

use crate::rig::Rig;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_inv_02_one_host_per_slot_and_none_without_a_record() {
    let seed = std::env::var("BIGFLEET_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("BIGFLEET_SEED={seed}");
    let mut random = Random(seed);
    let mut rig = Rig::new(&json!({"visible_after_ms": 200, "running_after_ms": 300})).await;
    rig.flags.extend(["--failed-hold=500ms".into(), "--transition-timeout=20s".into()]);
    rig.start().await;
    let ids: Vec<_> = rig.list().await.into_iter().map(|machine| machine.id).collect();
    for _ in 0..120 {
        let id = &ids[random.below(ids.len())];
        // Most calls are out of place: that is their right.
        let _ = match random.below(12) {
            0..=3 => rig.create(id).await.map(drop),
            4..=5 => rig.configure(id, "c-1", b"blob").await.map(drop),
            6..=7 => rig.drain(id, 0).await.map(drop),
            8..=9 => rig.delete(id).await.map(drop),
            10 => {
                let lost = random.below(2);
                rig.faults(json!({"throttle_next": random.below(6), "lose_launch_answers": lost}))
                    .await;
                Ok(())
            }
            _ => {
                rig.restart().await;
                Ok(())
            }
        };
    }
    rig.faults(json!({"throttle_next": 0, "lose_launch_answers": 0})).await;
    for id in &ids {
        let settled = [MachineState::Speculative, MachineState::Idle, MachineState::Configured];
        rig.becomes(id, |machine| settled.contains(&machine.state())).await;
    }
    // A host that nobody saw so far may still show itself, and is destroyed then.
    let begun = Instant::now();
    loop {
        let truth = rig.truth().await;
        assert_eq!(truth["crowded"], json!([]), "seed {seed}: {truth}");
        let hosts = truth["hosts"].as_array().unwrap().iter();
        let live: BTreeSet<_> =
            hosts.map(|host: &Value| host["id"].as_str().unwrap().to_owned()).collect();
        let records = rig.list().await.into_iter().filter_map(|machine| machine.host);
        let recorded: BTreeSet<_> =
            records.map(|host| host.r#ref.rsplit('/').next().unwrap().to_owned()).collect();
        if live == recorded {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "seed {seed}: {live:?} {recorded:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
