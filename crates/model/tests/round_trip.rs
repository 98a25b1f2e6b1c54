//! Decode then encode is the identity on valid machines (wire chapter §8.3).

use std::collections::BTreeMap;

use bigfleet_model::{CapacityType, MachineState, gate::inventory};
use bigfleet_wire::v1alpha1 as wire;
use proptest::{collection::btree_map, prelude::*, sample::select};
use prost::Message;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z]{1,8}",
        any::<String>(),
        Just("\0\u{1}\u{85}é".to_owned())
    ]
}

fn map() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(text(), text(), 0..4)
}

fn resources() -> impl Strategy<Value = Option<wire::Resources>> {
    let quantity = select(vec!["0", "1", "4000m", "0.5", "16Gi", "1e3", "7n", "+8", "1.5Ki"]);
    let name = select(vec!["cpu", "memory", "pods", "example.com/gpu"]);
    btree_map(name.prop_map(str::to_owned), quantity.prop_map(str::to_owned), 0..4)
        .prop_map(|resources| (!resources.is_empty()).then_some(wire::Resources { resources }))
}

prop_compose! {
    fn machine()(
        id in "[a-z0-9-]{1,20}",
        state in select(MachineState::ALL),
        host in ("[a-z]{1,5}", text()),
        names in (text(), text(), text(), "[a-z]{1,9}"),
        capacity_type in select(CapacityType::ALL),
        price in prop_oneof![Just(0.0), 0.0..1e6f64],
        probability in 0.0..=1.0f64,
        resources in resources(),
        allocatable in resources(),
        labels in map(),
        shard_metadata in map(),
        bound in any::<bool>(),
    ) -> wire::Machine {
        use MachineState::*;
        let (instance_type, zone, error, cluster) = names;
        let bound = matches!(state, Configured | Draining)
            || (bound && matches!(state, Configuring | Failed));
        wire::Machine {
            id,
            state: state.to_wire(),
            host: (!matches!(state, Speculative | Creating))
                .then_some(wire::HostRef { provider: host.0, r#ref: host.1 }),
            instance_type,
            zone,
            capacity_type: capacity_type.to_wire(),
            price_per_hour: price,
            interruption_probability: probability,
            resources,
            allocatable,
            labels,
            last_error: if state == Failed { error + "!" } else { String::new() },
            cluster: if bound { cluster } else { String::new() },
            shard_metadata: if bound { shard_metadata } else { BTreeMap::new() },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn decode_then_encode_is_the_identity(sent in machine()) {
        let bytes = sent.encode_to_vec();
        let accepted = inventory::machine(wire::Machine::decode(&*bytes).unwrap());
        let accepted = accepted.map_err(|rejected| TestCaseError::fail(rejected.to_string()))?;
        prop_assert!(!accepted.stray_binding);
        let encoded = wire::Machine::from(&accepted.machine);
        prop_assert_eq!(&encoded, &sent);
        prop_assert_eq!(encoded.encode_to_vec(), bytes);
    }

    #[test]
    fn wire_10_binding_and_metadata_vanish_together(sent in machine(), cluster in "[a-z]{0,3}", shard_metadata in map()) {
        let sent = wire::Machine { cluster, shard_metadata, ..sent };
        if let Ok(accepted) = inventory::machine(sent) {
            let machine = accepted.machine;
            if matches!(machine.state, MachineState::Idle | MachineState::Deleting) {
                prop_assert!(machine.cluster.is_none() && machine.shard_metadata.is_empty());
            }
        }
    }
}
