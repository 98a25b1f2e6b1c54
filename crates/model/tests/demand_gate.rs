//! The demand gate, each check with its exact text (wire chapter §8.1).

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, Dimension, Group, RollUp, gate::demand};
use bigfleet_wire::v1alpha1 as wire;

fn own() -> ClusterId {
    ClusterId::from("prod-eu-1")
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn requirement(key: &str, operator: i32, values: &[&str]) -> wire::NodeSelectorRequirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    wire::NodeSelectorRequirement { key: key.to_owned(), operator, values }
}

fn good() -> wire::CapacityNeed {
    wire::CapacityNeed {
        requirements: vec![requirement("zone", 1, &["b", "a"])],
        aggregate_resources: map(&[("cpu", "10"), ("memory", "1Gi")]),
        priority: 7,
        spread: vec![wire::TopologySpread {
            topology_key: "zone".to_owned(),
            max_skew: 1,
            when_unsatisfiable: 1,
        }],
        interruption_penalty_bucket: 3,
        reclamation_penalty_bucket: 27,
        min_unit: map(&[("cpu", "500m")]),
        group: "gang".to_owned(),
    }
}

fn send(needs: Vec<wire::CapacityNeed>) -> Result<RollUp, String> {
    let message = wire::ClusterCapacityNeeds {
        cluster_id: own().to_string(),
        timestamp_unix_nanos: 42,
        needs,
    };
    demand::roll_up(&own(), message).map_err(|refusal| refusal.to_string())
}

/// Sends a good need, then one that `spoil` made bad.
fn refusal(spoil: impl FnOnce(&mut wire::CapacityNeed)) -> String {
    let mut bad = good();
    spoil(&mut bad);
    send(vec![good(), bad]).expect_err("must be refused")
}

#[test]
fn a_foreign_cluster_id_is_refused() {
    let foreign = |cluster_id: &str| {
        let message = wire::ClusterCapacityNeeds {
            cluster_id: cluster_id.to_owned(),
            timestamp_unix_nanos: 1,
            // Also bad, but the cluster is looked at first.
            needs: vec![wire::CapacityNeed { interruption_penalty_bucket: 99, ..good() }],
        };
        demand::roll_up(&own(), message).unwrap_err().to_string()
    };
    assert_eq!(
        foreign("prod-us-1"),
        r#"cluster_id: "prod-us-1" is not the cluster of this session, "prod-eu-1""#
    );
    assert!(foreign("").starts_with("needs[0]"), "an empty id passes");
    assert!(foreign("prod-eu-1").starts_with("needs[0]"));
}

#[test]
fn wire_11_operators_are_1_to_5() {
    for number in [-1, 0, 6, 99, i32::MAX, i32::MIN] {
        assert_eq!(
            refusal(|need| need.requirements.push(requirement("k", number, &[]))),
            format!("needs[1].requirements[1].operator: {number} out of range [1,5]")
        );
    }
    for number in 1..=5 {
        let mut need = good();
        need.requirements[0].operator = number;
        assert!(send(vec![need]).is_ok());
    }
}

#[test]
fn wire_11_when_unsatisfiable_is_0_to_2() {
    for number in [-1, 3, 257] {
        assert_eq!(
            refusal(|need| need.spread[0].when_unsatisfiable = number),
            format!("needs[1].spread[0].when_unsatisfiable: {number} out of range [0,2]")
        );
    }
    for number in 0..=2 {
        let mut need = good();
        need.spread[0].when_unsatisfiable = number;
        assert!(send(vec![need]).is_ok());
    }
}

#[test]
fn wire_11_buckets_are_0_to_27() {
    for number in [-1, 28, 99, 256] {
        assert_eq!(
            refusal(|need| need.interruption_penalty_bucket = number),
            format!("needs[1].interruption_penalty_bucket: {number} out of range [0,27]")
        );
        assert_eq!(
            refusal(|need| need.reclamation_penalty_bucket = number),
            format!("needs[1].reclamation_penalty_bucket: {number} out of range [0,27]")
        );
    }
}

#[test]
fn quantities_parse_and_are_not_negative() {
    for (pairs, text) in [
        (&[("cpu", "abc")][..], r#"["cpu"]: unparseable quantity "abc""#),
        (&[("cpu", "")], r#"["cpu"]: unparseable quantity """#),
        (&[("cpu", "1e99")], r#"["cpu"]: unparseable quantity "1e99""#),
        (&[("cpu", "-1")], r#"["cpu"]: negative quantity "-1""#),
        (&[("cpu", "-1n")], r#"["cpu"]: negative quantity "-1n""#),
        (&[("", "1")], r#"[""]: empty resource name"#),
        // Names in order, the first mistake is told.
        (&[("b", "bad"), ("a", "worse")], r#"["a"]: unparseable quantity "worse""#),
    ] {
        assert_eq!(
            refusal(|need| need.aggregate_resources = map(pairs)),
            format!("needs[1].aggregate_resources{text}")
        );
        assert_eq!(refusal(|need| need.min_unit = map(pairs)), format!("needs[1].min_unit{text}"));
    }
}

#[test]
fn one_unit_fits_64_bits_and_a_sum_need_not() {
    assert_eq!(
        refusal(|need| need.min_unit = map(&[("memory", "9Pi")])),
        r#"needs[1].min_unit["memory"]: unparseable quantity "9Pi": exceeds 64-bit milli-units"#
    );
    let mut need = good();
    need.aggregate_resources = map(&[("memory", "9Pi")]);
    let accepted = send(vec![need]).unwrap();
    assert_eq!(accepted.needs[0].aggregate.get(Dimension::MEMORY), 10_133_099_161_583_616_000);
}

#[test]
fn checks_run_in_the_order_of_the_table() {
    let mut need = wire::CapacityNeed {
        requirements: vec![requirement("k", 9, &[])],
        aggregate_resources: map(&[("cpu", "x")]),
        spread: vec![wire::TopologySpread { when_unsatisfiable: 9, ..Default::default() }],
        interruption_penalty_bucket: 99,
        reclamation_penalty_bucket: 99,
        min_unit: map(&[("cpu", "y")]),
        ..Default::default()
    };
    let mut order = Vec::new();
    let mends: [fn(&mut wire::CapacityNeed); 6] = [
        |need| need.requirements.clear(),
        |need| need.spread.clear(),
        |need| need.interruption_penalty_bucket = 0,
        |need| need.reclamation_penalty_bucket = 0,
        |need| need.aggregate_resources.clear(),
        |need| need.min_unit.clear(),
    ];
    for mend in mends {
        let text = send(vec![need.clone()]).unwrap_err();
        order.push(text.split(':').next().unwrap().to_owned());
        mend(&mut need);
    }
    assert!(send(vec![need]).is_ok());
    assert_eq!(
        order,
        [
            "needs[0].requirements[0].operator",
            "needs[0].spread[0].when_unsatisfiable",
            "needs[0].interruption_penalty_bucket",
            "needs[0].reclamation_penalty_bucket",
            r#"needs[0].aggregate_resources["cpu"]"#,
            r#"needs[0].min_unit["cpu"]"#,
        ]
    );
}

#[test]
fn foreign_text_is_cut_in_the_answer() {
    let long = "x".repeat(1_000_000);
    let text = refusal(|need| need.min_unit = map(&[("cpu", &long)]));
    assert!(text.len() < 1024, "{} bytes", text.len());
}

#[test]
fn what_is_no_error_passes() {
    assert_eq!(send(vec![]).unwrap().needs, [], "an empty roll-up withdraws");
    let bare = send(vec![wire::CapacityNeed::default()]).unwrap();
    assert!(bare.needs[0].aggregate.is_zero() && bare.needs[0].min_unit.is_zero());
    let mut need = good();
    need.requirements = vec![requirement("zone", 1, &[])];
    assert!(send(vec![need]).is_ok(), "IN without values");
    let mut need = good();
    need.spread[0].max_skew = -3;
    assert!(send(vec![need]).is_ok());
}

#[test]
fn an_accepted_need_says_what_was_sent() {
    let roll_up = send(vec![good()]).unwrap();
    assert_eq!((roll_up.cluster, roll_up.timestamp), (own(), 42));
    let need = &roll_up.needs[0];
    assert_eq!(need.arrival, 42);
    assert_eq!(need.group, Group::from("gang"));
    assert_eq!(
        need.profile.fingerprint().as_str(),
        "p=7|ipb=3|rpb=27|reqs=zone:1:a,b;|spr=zone:1:1;"
    );
    let mut canonical = good();
    canonical.requirements[0].values.sort();
    assert_eq!(wire::CapacityNeed::from(need), canonical);
}

#[test]
fn demand_rounds_up() {
    let mut need = good();
    need.aggregate_resources = map(&[("cpu", "1n")]);
    need.min_unit = map(&[("cpu", "1500001u")]);
    let accepted = send(vec![need]).unwrap();
    assert_eq!(accepted.needs[0].aggregate.get(Dimension::CPU), 1);
    assert_eq!(accepted.needs[0].min_unit.get(Dimension::CPU), 1501);
}

#[test]
fn needs_of_one_identity_are_merged_in_identity_order() {
    let mut permuted = good();
    permuted.requirements[0].values.reverse();
    permuted.aggregate_resources = map(&[("cpu", "1"), ("example.com/gpu", "1")]);
    permuted.min_unit = map(&[("cpu", "100m"), ("memory", "1Mi")]);
    let other_gang = wire::CapacityNeed { group: "a-gang".to_owned(), ..good() };
    let first = wire::CapacityNeed { priority: 10, ..good() };
    let roll_up = send(vec![good(), permuted, other_gang, first]).unwrap();

    let order: Vec<(i32, &str)> =
        roll_up.needs.iter().map(|need| (need.profile.priority(), &*need.group)).collect();
    assert_eq!(order, [(10, "gang"), (7, "a-gang"), (7, "gang")]);
    let merged = wire::CapacityNeed::from(&roll_up.needs[2]);
    assert_eq!(
        merged.aggregate_resources,
        map(&[("cpu", "11"), ("example.com/gpu", "1"), ("memory", "1Gi")])
    );
    assert_eq!(merged.min_unit, map(&[("cpu", "500m"), ("memory", "1Mi")]));
}

#[test]
fn wire_3_demand_has_no_count() {
    // Ten pods of one core are ten cores of at least one: how many machines that
    // takes is nowhere in the need.
    let ten = wire::CapacityNeed {
        aggregate_resources: map(&[("cpu", "10")]),
        min_unit: map(&[("cpu", "1")]),
        ..Default::default()
    };
    let one = wire::CapacityNeed {
        aggregate_resources: map(&[("cpu", "1")]),
        min_unit: map(&[("cpu", "1")]),
        ..Default::default()
    };
    assert_eq!(send(vec![one; 10]).unwrap(), send(vec![ten]).unwrap());
}

#[test]
fn wire_4_the_two_penalties_and_priority_travel_apart() {
    let travelled = |interruption, reclamation, priority| {
        let need = wire::CapacityNeed {
            interruption_penalty_bucket: interruption,
            reclamation_penalty_bucket: reclamation,
            priority,
            ..Default::default()
        };
        let roll_up = send(vec![need]).unwrap();
        let profile = &roll_up.needs[0].profile;
        (profile.interruption().to_wire(), profile.reclamation().to_wire(), profile.priority())
    };
    for sent in [(0, 0, 0), (27, 1, 0), (1, 27, 0), (1, 1, i32::MAX), (5, 0, i32::MIN)] {
        assert_eq!(travelled(sent.0, sent.1, sent.2), sent);
    }
}
