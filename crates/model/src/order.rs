//! Which bound machines a need holds on to (engine chapter §2).

use std::cmp::Ordering;

use crate::machine::Machine;

/// First kept first: cheap, then valuable to its workload, then by id.
pub fn keep_order(a: &Machine, b: &Machine) -> Ordering {
    let reclamation = |machine: &Machine| machine.stamp.as_ref().map_or(0.0, |s| s.reclamation);
    a.class
        .price_per_hour
        .total_cmp(&b.class.price_per_hour)
        .then_with(|| reclamation(b).total_cmp(&reclamation(a)))
        .then_with(|| a.id.cmp(&b.id))
}

/// The exact reverse: the dearest and least valuable leave first.
pub fn release_order(a: &Machine, b: &Machine) -> Ordering {
    keep_order(b, a)
}
