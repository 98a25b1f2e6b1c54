//! Peers of different versions understand each other (wire.md §6.1, §14), and
//! the generated code keeps the numbers and names of the specification.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;
use prost::Message;

/// Peers that know only the base contract, written by hand from wire.md §4 and §6.
mod base {
    use prost::{Message, Oneof};

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Hello {
        #[prost(string, tag = "1")]
        pub(crate) cluster_id: String,
        #[prost(string, tag = "3")]
        pub(crate) protocol_version: String,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Acknowledgement {
        #[prost(string, tag = "1")]
        pub(crate) echo: String,
        #[prost(int64, tag = "2")]
        pub(crate) coordinator_term: i64,
        #[prost(int64, tag = "3")]
        pub(crate) shard_epoch: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct ShardMessage {
        #[prost(oneof = "Payload", tags = "1")]
        pub(crate) payload: Option<Payload>,
    }

    #[derive(Clone, PartialEq, Oneof)]
    pub(crate) enum Payload {
        #[prost(message, tag = "1")]
        Ack(Acknowledgement),
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct Shortfall {
        #[prost(int32, tag = "3")]
        pub(crate) priority: i32,
        #[prost(int32, tag = "5")]
        pub(crate) age_cycles: i32,
        #[prost(int32, tag = "6")]
        pub(crate) interruption_penalty_bucket: i32,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(crate) struct ShardReport {
        #[prost(string, tag = "1")]
        pub(crate) shard_id: String,
        #[prost(int64, tag = "2")]
        pub(crate) cycle: i64,
        #[prost(message, repeated, tag = "6")]
        pub(crate) shortfalls: Vec<Shortfall>,
        #[prost(string, tag = "8")]
        pub(crate) shard_address: String,
    }
}

#[test]
fn unknown_fields_are_ignored() {
    let known = wire::MachineRef { id: "m-1".to_owned() };
    let mut bytes = known.encode_to_vec();
    // Field 1000 as varint, field 1001 as bytes, field 1002 as fixed64.
    bytes.extend([0xc0, 0x3e, 0x07]);
    bytes.extend([0xca, 0x3e, 0x02, b'x', b'y']);
    bytes.extend([0xd1, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(wire::MachineRef::decode(bytes.as_slice()), Ok(known));
}

#[test]
fn a_base_shard_reads_a_new_operator() {
    let sent = wire::Hello {
        cluster_id: "c-1".to_owned(),
        protocol_version: "v1alpha1".to_owned(),
        features: vec!["final-reclaim-ack".to_owned(), "need-status".to_owned()],
    };
    let read = base::Hello::decode(sent.encode_to_vec().as_slice()).unwrap();
    assert_eq!((read.cluster_id, read.protocol_version), (sent.cluster_id, sent.protocol_version));
}

#[test]
fn a_base_operator_reads_a_new_shard() {
    let ack = wire::Acknowledgement {
        echo: "rollup".to_owned(),
        coordinator_term: 7,
        shard_epoch: -3,
        rollup_timestamp_unix_nanos: 42,
        held: true,
    };
    let frame = |payload| wire::ShardMessage { payload: Some(payload) }.encode_to_vec();

    let bytes = frame(wire::shard_message::Payload::Ack(ack));
    let read = base::ShardMessage::decode(bytes.as_slice()).unwrap();
    let expected =
        base::Acknowledgement { echo: "rollup".to_owned(), coordinator_term: 7, shard_epoch: -3 };
    assert_eq!(read.payload, Some(base::Payload::Ack(expected)));

    // A payload it does not know is no payload, not an error that ends the stream.
    let status = wire::NeedStatusUpdate { satisfied: true, cycle: 9, ..Default::default() };
    let bytes = frame(wire::shard_message::Payload::NeedStatus(status));
    assert_eq!(base::ShardMessage::decode(bytes.as_slice()).unwrap().payload, None);
}

#[test]
fn a_base_coordinator_reads_a_new_shard() {
    let min_unit = BTreeMap::from([("cpu".to_owned(), "4".to_owned())]);
    let sent = wire::ShardReport {
        shard_id: "s-1".to_owned(),
        cycle: 12,
        shortfalls: vec![wire::Shortfall {
            priority: -5,
            age_cycles: 6,
            interruption_penalty_bucket: wire::PenaltyBucket::Pinned.into(),
            min_unit: Some(wire::Resources { resources: min_unit }),
            ..Default::default()
        }],
        shard_address: "s-1:7780".to_owned(),
        observed_term: 3,
        assignment_digest: 0xfeed,
        cluster_ids: vec!["c-1".to_owned()],
        holdings: Some(wire::Assignment { version: 8, ..Default::default() }),
        ..Default::default()
    };
    let read = base::ShardReport::decode(sent.encode_to_vec().as_slice()).unwrap();
    let shortfall =
        base::Shortfall { priority: -5, age_cycles: 6, interruption_penalty_bucket: 27 };
    let expected = base::ShardReport {
        shard_id: "s-1".to_owned(),
        cycle: 12,
        shortfalls: vec![shortfall],
        shard_address: "s-1:7780".to_owned(),
    };
    assert_eq!(read, expected);
}

/// The other direction: what a base peer sends leaves every addition zero.
#[test]
fn a_new_peer_reads_a_base_peer() {
    let sent = base::Acknowledgement { echo: "hello".to_owned(), ..Default::default() };
    let read = wire::Acknowledgement::decode(sent.encode_to_vec().as_slice()).unwrap();
    let expected = wire::Acknowledgement { echo: "hello".to_owned(), ..Default::default() };
    assert_eq!(read, expected);
}

/// Providers and callers older than the fencing token take a MachineRef for Delete.
#[test]
fn delete_request_is_wire_compatible_with_machine_ref() {
    let reference = wire::MachineRef { id: "m-1".to_owned() };
    let unfenced = wire::DeleteRequest { machine_id: "m-1".to_owned(), ..Default::default() };
    assert_eq!(reference.encode_to_vec(), unfenced.encode_to_vec());

    let fenced = wire::DeleteRequest {
        shard_id: "s-1".to_owned(),
        shard_epoch: 4,
        sequence_number: 5,
        ..unfenced
    };
    assert_eq!(wire::MachineRef::decode(fenced.encode_to_vec().as_slice()), Ok(reference));
}

/// wire.md §10: 3+k is 2^k dollars for k in 0..=23, with three below and one above.
#[test]
fn penalty_buckets_follow_the_formula() {
    let expected = ["UNSPECIFIED", "ZERO", "HALF_DOLLAR"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..=23).map(|k| (1_u64 << k).to_string()))
        .chain(["PINNED".to_owned()]);
    let mut number = 0;
    for name in expected {
        let bucket = wire::PenaltyBucket::try_from(number).unwrap();
        assert_eq!(bucket.as_str_name(), format!("PENALTY_BUCKET_{name}"));
        number += 1;
    }
    assert_eq!(number, 28);
    for outside in [-1, 28] {
        assert!(wire::PenaltyBucket::try_from(outside).is_err(), "{outside}");
    }
}

/// The build renames this field in Rust; on the wire it stays number 2.
#[test]
fn the_renamed_field_keeps_its_number() {
    let state = wire::ActuationState {
        requested_mode: wire::ActuationMode::Paused.into(),
        ..Default::default()
    };
    assert_eq!(state.encode_to_vec(), [0x10, 0x02]);
}

#[cfg(feature = "grpc")]
#[test]
fn servers_register_under_the_specified_names() {
    let names = [
        wire::capacity_provider_server::SERVICE_NAME,
        wire::shard_server::SERVICE_NAME,
        wire::shard_read_server::SERVICE_NAME,
        wire::shard_observe_server::SERVICE_NAME,
        wire::shard_admin_server::SERVICE_NAME,
        wire::coordinator_server::SERVICE_NAME,
    ];
    let expected = [
        "bigfleet.v1alpha1.CapacityProvider",
        "bigfleet.v1alpha1.Shard",
        "bigfleet.v1alpha1.ShardRead",
        "bigfleet.v1alpha1.ShardObserve",
        "bigfleet.v1alpha1.ShardAdmin",
        "bigfleet.v1alpha1.Coordinator",
    ];
    assert_eq!(names, expected);
}
