//! The report itself.

use std::collections::BTreeSet;

use bigfleet_engine::Shortage;
use bigfleet_model::{ClusterId, Totals, digest};
use bigfleet_net::values;
use bigfleet_shard::{ReportSide, Standing};
use bigfleet_wire::v1alpha1 as wire;

use crate::{memory::Carried, options::Options, shared};

/// Everything that a shard reports. With its own provider scope, what belongs to shared
/// scope stays empty, above all `assignment_digest`.
pub(crate) async fn build(
    side: &ReportSide,
    options: &Options,
    carried: &Carried,
) -> wire::ShardReport {
    let standing = side.standing().await;
    let clusters = side.clusters();
    let named = nameable(&clusters, carried.clusters);
    let report = wire::ShardReport {
        shard_id: side.shard_id().to_owned(),
        shard_address: options.advertise_addr.clone(),
        cycle: carried.cycle,
        timestamp_unix_nanos: side.unix_nanos(),
        shard_epoch: side.epoch(),
        summary: Some(summary(&standing, &options.provider_addr)),
        shortfalls: standing.shortfalls.iter().map(shortfall).collect(),
        instruction_acks: carried.acks.clone(),
        observed_term: carried.observed_term,
        cluster_digest: digest::of_set(named.iter().map(String::as_str)),
        cluster_ids: if carried.clusters { named } else { Vec::new() },
        fleet_id: carried.fleet_id.clone(),
        instance: carried.instance,
        ..wire::ShardReport::default()
    };
    match side.shared() {
        None => report,
        Some(shared) => shared::complete(&shared, carried, report).await,
    }
}

/// The clusters that a coordinator takes the name of: any other, such as a provider's own
/// word, would have it refuse the report, and every one after it.
fn nameable(clusters: &BTreeSet<ClusterId>, warn: bool) -> Vec<String> {
    let mut named = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        match values::id(cluster.as_str(), "cluster", "prod-eu-1") {
            Ok(name) => named.push(name),
            Err(why) if warn => {
                tracing::warn!(%cluster, why, "the coordinator is not told of a cluster");
            }
            Err(_) => {}
        }
    }
    named
}

fn summary(standing: &Standing, provider_addr: &str) -> wire::ShardSummary {
    let counts = |counts: &std::collections::BTreeMap<String, usize>| {
        counts.iter().map(|(name, count)| (name.clone(), whole(*count))).collect()
    };
    wire::ShardSummary {
        total_machines: whole(standing.total),
        free_machines: whole(standing.free),
        per_instance_type_counts: counts(&standing.by_instance_type),
        per_zone_counts: counts(&standing.by_zone),
        provider_address: provider_addr.to_owned(),
        ..wire::ShardSummary::default()
    }
}

/// A shortage as a report has it.
#[must_use]
pub fn shortfall(shortage: &Shortage) -> wire::Shortfall {
    let profile = &shortage.profile;
    wire::Shortfall {
        requirements: profile.requirements().iter().map(Into::into).collect(),
        deficit: Some(resources(&shortage.deficit)),
        priority: profile.priority(),
        age_cycles: i32::try_from(shortage.age).unwrap_or(i32::MAX),
        interruption_penalty_bucket: profile.interruption().to_wire(),
        min_unit: Some(resources(&shortage.min_unit)),
    }
}

fn resources(totals: &Totals) -> wire::Resources {
    wire::Resources { resources: totals.to_wire().into_iter().collect() }
}

fn whole(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A coordinator refuses a report whole.
    #[test]
    fn a_name_that_no_coordinator_takes_is_not_said() {
        let clusters = ["a", "team:eu", "b.c_d-1", ""].map(ClusterId::from);
        assert_eq!(nameable(&clusters.into(), true), ["a", "b.c_d-1"]);
    }
}
