//! AvailableCapacities.

use std::collections::HashSet;

use bigfleet_crds::{Availability, AvailableCapacity, available_capacity_name};
use bigfleet_in_cluster::memory::{Fault, Verb};
use bigfleet_wire::v1alpha1::AvailableCapacityUpdate;

use crate::rig::Rig;

fn hint(fingerprint: &str, count: i32) -> AvailableCapacityUpdate {
    AvailableCapacityUpdate {
        supersedes_key: format!("available:{fingerprint}"),
        available_count: count,
        confidence: if count == 0 { 1 } else { 4 },
        cost_per_hour: 0.768,
        ..AvailableCapacityUpdate::default()
    }
}

fn object(rig: &Rig, fingerprint: &str) -> Option<AvailableCapacity> {
    rig.server.get(None, &available_capacity_name(&format!("available:{fingerprint}")))
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_mirrored_and_written_only_when_it_changes() {
    let rig = Rig::new().await;
    rig.server.inject(Fault::answer(500).on(Verb::Create, "availablecapacities").times(2));
    rig.capacity.frame(&hint("a", 3));
    rig.idle().await;
    let spec = object(&rig, "a").unwrap().spec;
    assert_eq!((spec.availability, spec.available_count), (Availability::High, 3));
    assert_eq!(spec.cost.as_str(), "768m");
    let writes = rig.server.writes();
    rig.capacity.frame(&hint("a", 3));
    rig.idle().await;
    assert_eq!(rig.server.writes(), writes);
    rig.capacity.frame(&hint("a", 0));
    rig.idle().await;
    assert_eq!(object(&rig, "a").unwrap().spec.availability, Availability::None);
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_when_nobody_wants_it_and_the_stale_go_after_ten_minutes() {
    let mut rig = Rig::new().await;
    rig.capacity.demanded(HashSet::from(["a".into(), "b".into()]));
    for fingerprint in ["a", "b", "c"] {
        rig.capacity.frame(&hint(fingerprint, 1));
    }
    rig.idle().await;
    rig.capacity.frame(&hint("a", 0));
    rig.capacity.frame(&hint("c", 0));
    rig.idle().await;
    assert!(object(&rig, "a").is_some());
    assert!(object(&rig, "c").is_none());
    rig.disconnect();
    rig = rig.restart().await;
    rig.connect();
    rig.capacity.frame(&hint("b", 1));
    rig.pass(590).await;
    assert!(object(&rig, "a").is_some());
    rig.pass(20).await;
    rig.idle().await;
    assert!(object(&rig, "a").is_none());
    assert!(object(&rig, "b").is_some());
}
