//! What survives a restart of the shard in a provider's hands (wire chapter §11).

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_model::{
    Fingerprint, Group, Machine, MachineState, Need, PenaltyBucket, Profile, Resources, Stamp,
    Totals, gate::inventory, machine::stamp::key, order,
};
use bigfleet_wire::v1alpha1 as wire;

fn stamp() -> Stamp {
    Stamp {
        priority: Some(-5),
        interruption: 0.5,
        reclamation: f64::INFINITY,
        fingerprint: Fingerprint::from("p=-5|…"),
        group: Group::from("zone\0app=db,;\0team-a"),
        for_cluster: None,
    }
}

#[test]
fn encode_then_decode_is_the_identity() {
    let metadata = stamp().to_metadata();
    let texts: Vec<(&str, &str)> =
        metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(
        texts,
        [
            ("bigfleet.lucy.sh/assigned-group", "zone\0app=db,;\0team-a"),
            ("bigfleet.lucy.sh/assigned-interruption-penalty-dollars", "0.5"),
            ("bigfleet.lucy.sh/assigned-need-fingerprint", "p=-5|…"),
            ("bigfleet.lucy.sh/assigned-priority", "-5"),
            ("bigfleet.lucy.sh/assigned-reclamation-penalty-dollars", "+Inf"),
        ]
    );
    assert_eq!(Stamp::from_metadata(&metadata), (Some(stamp()), vec![]));
}

#[test]
fn every_bucket_survives() {
    for bucket in (0..=27).filter_map(PenaltyBucket::from_wire) {
        let profile = Profile::new(vec![], vec![], 1, bucket, bucket);
        let need = Need {
            cluster: "c".into(),
            profile: Arc::new(profile),
            group: Group::none(),
            aggregate: Totals::zero(),
            min_unit: Resources::zero(),
            arrival: 0,
        };
        let sent = Stamp { for_cluster: None, ..Stamp::of(&need) };
        assert_eq!(Stamp::from_metadata(&sent.to_metadata()), (Some(sent), vec![]));
    }
}

#[test]
fn other_spellings_of_dollars_are_read() {
    for (text, dollars) in [
        ("Inf", f64::INFINITY),
        ("inf", f64::INFINITY),
        ("+Inf", f64::INFINITY),
        ("1e+06", 1_000_000.0),
        ("0", 0.0),
        ("-0", 0.0),
    ] {
        let metadata = BTreeMap::from([(key::INTERRUPTION.to_owned(), text.to_owned())]);
        let (stamp, malformed) = Stamp::from_metadata(&metadata);
        let read = stamp.unwrap().interruption;
        assert_eq!((read.to_bits(), malformed), (dollars.to_bits(), vec![]), "{text}");
    }
}

#[test]
fn each_key_is_read_alone() {
    for (broken, values) in [
        (key::PRIORITY, &["", "x", "1.5", "2147483648"][..]),
        (key::INTERRUPTION, &["", "NaN", "-1", "-inf", "$3"]),
        (key::RECLAMATION, &["", "nan", "-0.5", "1,5"]),
    ] {
        for value in values {
            let mut metadata = stamp().to_metadata();
            metadata.insert(broken.to_owned(), (*value).to_owned());
            metadata.insert("bigfleet.lucy.sh/assigned-shoe-size".to_owned(), "43".to_owned());
            let mut expected = stamp();
            match broken {
                key::PRIORITY => expected.priority = None,
                key::INTERRUPTION => expected.interruption = 0.0,
                _ => expected.reclamation = 0.0,
            }
            let (read, malformed) = Stamp::from_metadata(&metadata);
            assert_eq!(read, Some(expected), "{broken} = {value:?}");
            let texts: Vec<String> = malformed.iter().map(ToString::to_string).collect();
            assert_eq!(texts, [format!("shard_metadata[{broken:?}]: malformed value {value:?}")]);
        }
    }
}

#[test]
fn a_long_malformed_value_is_cut_in_the_log() {
    let metadata = BTreeMap::from([(key::PRIORITY.to_owned(), "é".repeat(1_000_000))]);
    let (stamp, malformed) = Stamp::from_metadata(&metadata);
    assert_eq!(stamp, None);
    assert_eq!(
        malformed[0].to_string(),
        format!("shard_metadata[{:?}]: malformed value \"{}\"…", key::PRIORITY, "é".repeat(128))
    );
}

#[test]
fn no_known_key_is_no_stamp() {
    assert_eq!(Stamp::from_metadata(&BTreeMap::new()), (None, vec![]));
    let foreign = BTreeMap::from([("example.com/note".to_owned(), "hello".to_owned())]);
    assert_eq!(Stamp::from_metadata(&foreign), (None, vec![]));
}

fn machine(id: &str, price: f64, reclamation: Option<f64>) -> Machine {
    let message = wire::Machine {
        id: id.to_owned(),
        state: MachineState::Speculative.to_wire(),
        price_per_hour: price,
        ..Default::default()
    };
    let mut machine = inventory::machine(message).unwrap().machine;
    machine.stamp =
        reclamation.map(|reclamation| Arc::new(Stamp { reclamation, ..Stamp::default() }));
    machine
}

#[test]
fn keep_the_cheap_then_the_valued_then_by_id() {
    let kept = [
        machine("z", 0.5, Some(f64::INFINITY)),
        machine("y", 0.5, Some(8.0)),
        machine("a", 0.5, None),
        machine("b", 0.5, Some(0.0)),
        machine("c", 1.0, Some(f64::INFINITY)),
    ];
    let mut machines = [3, 1, 4, 0, 2].map(|at: usize| kept[at].clone());
    machines.sort_by(order::keep_order);
    assert_eq!(machines, kept);
    machines.sort_by(order::release_order);
    assert!(machines.iter().rev().eq(&kept), "release order is the exact reverse");
}
