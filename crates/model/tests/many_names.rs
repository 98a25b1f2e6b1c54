//! A peer that invents resource names (wire chapter §8.1, decision 0002).
//!
//! The table of names is the process's and is filled here, so this has a
//! process of its own.

use std::collections::BTreeMap;

use bigfleet_model::{
    ClusterId, Dimension, RollUp,
    dimension::{MAX_DIMENSIONS, MAX_NAME_BYTES},
    gate::demand,
};
use bigfleet_wire::v1alpha1 as wire;

fn send(aggregates: impl IntoIterator<Item = BTreeMap<String, String>>) -> Result<RollUp, String> {
    let need =
        |aggregate_resources| wire::CapacityNeed { aggregate_resources, ..Default::default() };
    let needs = aggregates.into_iter().map(need).collect();
    let message = wire::ClusterCapacityNeeds { needs, ..Default::default() };
    demand::roll_up(&ClusterId::from("c"), message).map_err(|refusal| refusal.to_string())
}

fn name(n: usize) -> String {
    format!("example.com/{n:05}")
}

fn one_each(numbers: impl Iterator<Item = usize>) -> BTreeMap<String, String> {
    numbers.map(|n| (name(n), "1".to_owned())).collect()
}

/// One test, for each step stands on the names that the one before has used up.
#[test]
fn a_process_takes_65536_names_and_then_refuses_new_ones() {
    let known = ["cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu"];
    let new = MAX_DIMENSIONS - known.len();
    // From the last name to the first, so that in the order of the map, which is
    // by name, each dimension comes before all that were read before it.
    for n in (0..new).rev() {
        Dimension::intern(&name(n)).unwrap();
    }

    let whole = send([one_each(0..new)]).unwrap();
    let odd = one_each((0..new).filter(|n| n % 2 == 1));
    let even = one_each((0..new).filter(|n| n % 2 == 0));
    assert_eq!(send([odd, even]).unwrap(), whole, "halves of one need are the need");
    let aggregate = &whole.needs[0].aggregate;
    assert_eq!(aggregate.iter().len(), new);
    assert!(aggregate.iter().all(|(_, amount)| amount == 1_000));

    let refused = |name: &str| send([BTreeMap::from([(name.to_owned(), "1".to_owned())])]);
    assert_eq!(
        refused("example.com/one-too-many").unwrap_err(),
        "needs[0].aggregate_resources[\"example.com/one-too-many\"]: \
         more than 65536 distinct resource names in this process"
    );
    for known in known {
        assert!(refused(known).is_ok(), "{known} is known");
    }
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    assert_eq!(
        refused(&long).unwrap_err(),
        format!(
            "needs[0].aggregate_resources[\"{}\"…]: resource name longer than 317 bytes",
            &long[..128]
        )
    );
}
