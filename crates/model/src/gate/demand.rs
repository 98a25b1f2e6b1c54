//! The demand gate: a roll-up is accepted or refused whole (wire chapter §8.1).
//!
//! Needs in index order, checks in the order of the specification, map keys
//! sorted; the first error wins, so equal input gets an equal answer.

use std::sync::Arc;

use bigfleet_wire::v1alpha1 as wire;

use super::{
    Quoted, Refusal,
    quantities::{self, Rounding},
};
use crate::{
    id::{ClusterId, Group},
    need::{Need, RollUp},
    penalty::PenaltyBucket,
    profile::Profile,
    requirement::{Operator, Requirement},
    spread::{TopologySpread, WhenUnsatisfiable},
};

/// Checks a roll-up that arrived on the session of `cluster`. Needs of one
/// identity are merged.
pub fn roll_up(
    cluster: &ClusterId,
    message: wire::ClusterCapacityNeeds,
) -> Result<RollUp, Refusal> {
    if !message.cluster_id.is_empty() && message.cluster_id != cluster.as_str() {
        let (got, own) = (Quoted(&message.cluster_id), Quoted(cluster));
        return Err(Refusal::new(
            "cluster_id",
            format_args!("{got} is not the cluster of this session, {own}"),
        ));
    }
    let timestamp = message.timestamp_unix_nanos;
    let mut needs: Vec<Need> = Vec::with_capacity(message.needs.len());
    for (index, message) in message.needs.into_iter().enumerate() {
        let need = need(cluster, timestamp, message)
            .map_err(|refusal| refusal.inside(format_args!("needs[{index}]")))?;
        needs.push(need);
    }
    Ok(RollUp { cluster: cluster.clone(), timestamp, needs: merged(needs) })
}

/// Checks one need; paths in a refusal start at the need.
pub fn need(
    cluster: &ClusterId,
    arrival: i64,
    message: wire::CapacityNeed,
) -> Result<Need, Refusal> {
    let requirements = requirements(message.requirements)?;
    let spread = spread(message.spread)?;
    let interruption = bucket("interruption_penalty_bucket", message.interruption_penalty_bucket)?;
    let reclamation = bucket("reclamation_penalty_bucket", message.reclamation_penalty_bucket)?;
    let aggregate = quantities::totals("aggregate_resources", &message.aggregate_resources)?;
    let min_unit = quantities::resources("min_unit", &message.min_unit, Rounding::Up)?;
    let profile = Profile::new(requirements, spread, message.priority, interruption, reclamation);
    Ok(Need {
        cluster: cluster.clone(),
        profile: Arc::new(profile),
        group: if message.group.is_empty() { Group::none() } else { message.group.into() },
        aggregate,
        min_unit,
        arrival,
    })
}

fn requirements(messages: Vec<wire::NodeSelectorRequirement>) -> Result<Vec<Requirement>, Refusal> {
    let check = |(index, message): (usize, wire::NodeSelectorRequirement)| {
        let operator = Operator::from_wire(message.operator)
            .filter(|operator| *operator != Operator::Unspecified)
            .ok_or_else(|| {
                let path = format!("requirements[{index}].operator");
                Refusal::out_of_range(path, message.operator, 1, 5)
            })?;
        Ok(Requirement { key: message.key, operator, values: message.values })
    };
    messages.into_iter().enumerate().map(check).collect()
}

fn spread(messages: Vec<wire::TopologySpread>) -> Result<Vec<TopologySpread>, Refusal> {
    let check = |(index, message): (usize, wire::TopologySpread)| {
        // An unknown value would drop a hard constraint.
        let when_unsatisfiable = WhenUnsatisfiable::from_wire(message.when_unsatisfiable)
            .ok_or_else(|| {
                let path = format!("spread[{index}].when_unsatisfiable");
                Refusal::out_of_range(path, message.when_unsatisfiable, 0, 2)
            })?;
        let (topology_key, max_skew) = (message.topology_key, message.max_skew);
        Ok(TopologySpread { topology_key, max_skew, when_unsatisfiable })
    };
    messages.into_iter().enumerate().map(check).collect()
}

fn bucket(path: &str, number: i32) -> Result<PenaltyBucket, Refusal> {
    PenaltyBucket::from_wire(number)
        .ok_or_else(|| Refusal::out_of_range(path, number, 0, PenaltyBucket::PINNED.to_wire()))
}

/// One need per identity, in identity order. Our operators send it that way, so
/// mostly there is nothing to do.
fn merged(mut needs: Vec<Need>) -> Vec<Need> {
    if needs.is_sorted_by(|a, b| identity(a) < identity(b)) {
        return needs;
    }
    // Needs are large: sort what they are compared by, then move each need once.
    let mut order: Vec<_> =
        needs.iter().enumerate().map(|(place, need)| (identity(need), place)).collect();
    order.sort_unstable();
    let mut sorted_from: Vec<usize> = order.into_iter().map(|(_, place)| place).collect();
    for place in 0..needs.len() {
        // Swaps made for earlier places have carried this need along.
        let mut from = sorted_from[place];
        while from < place {
            from = sorted_from[from];
        }
        sorted_from[place] = from;
        needs.swap(place, from);
    }
    needs.dedup_by(|next, kept| {
        let same = kept.is_same_need(next);
        if same {
            kept.absorb(next);
        }
        same
    });
    needs
}

fn identity(need: &Need) -> (&str, &str) {
    (need.profile.fingerprint(), &need.group)
}
