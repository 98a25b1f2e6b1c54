//! Any bytes are a roll-up or are refused whole; what is accepted means the same
//! when sent again.

#![no_main]

use bigfleet_model::{ClusterId, Need, gate::demand};
use bigfleet_wire::v1alpha1 as wire;
use libfuzzer_sys::fuzz_target;
use prost::Message;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = wire::ClusterCapacityNeeds::decode(bytes) else { return };
    let cluster = ClusterId::from(message.cluster_id.as_str());
    let sent = message.needs.len();
    let accepted = match demand::roll_up(&cluster, message) {
        Ok(accepted) => accepted,
        Err(refusal) => {
            assert!(refusal.path.starts_with("needs["), "{refusal}");
            return;
        }
    };
    assert!(accepted.needs.len() <= sent);
    // A sum of several needs may pass what a quantity can say; it then prints as
    // the largest that can be read.
    let sayable =
        |need: &Need| need.aggregate.iter().all(|(_, millis)| millis < i128::MAX / 1_000_000);
    if !accepted.needs.iter().all(sayable) {
        return;
    }
    let again = wire::ClusterCapacityNeeds {
        cluster_id: cluster.to_string(),
        timestamp_unix_nanos: accepted.timestamp,
        needs: accepted.needs.iter().map(wire::CapacityNeed::from).collect(),
    };
    let again = demand::roll_up(&cluster, again).expect("an accepted roll-up is acceptable");
    assert_eq!(again, accepted);
});
