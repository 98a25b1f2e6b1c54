//! Any bytes are a machine or are refused; what is accepted encodes to what was
//! decoded.

#![no_main]

use bigfleet_model::{CapacityType, Stamp, gate::inventory};
use bigfleet_wire::v1alpha1 as wire;
use libfuzzer_sys::fuzz_target;
use prost::Message;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = wire::Machine::decode(bytes) else { return };
    let Ok(accepted) = inventory::machine(message.clone()) else { return };
    let machine = accepted.machine;
    let _ = Stamp::from_metadata(&machine.shard_metadata);

    let mut expected = message;
    // What the gate says it leaves out: empty sub-messages, bindings that the
    // state cannot have, capacity types that we do not know.
    let empty = |map: &wire::Resources| map.resources.is_empty();
    expected.resources = expected.resources.filter(|map| !empty(map));
    expected.allocatable = expected.allocatable.filter(|map| !empty(map));
    expected.host = expected.host.filter(|host| *host != wire::HostRef::default());
    if accepted.stray_binding {
        expected.cluster.clear();
        expected.shard_metadata.clear();
    }
    if CapacityType::from_wire(expected.capacity_type).is_none() {
        expected.capacity_type = 0;
    }
    assert_eq!(wire::Machine::from(&machine), expected);
});
