//! The last report of each shard, as bytes: thousands of shards with their pools and
//! shortfalls are decoded only when somebody looks. Rebalancing looks at all of them, so
//! of shards that take part in it supply and demand are kept as numbers, too.

use std::sync::Arc;

use bigfleet_model::{Operator, PenaltyBucket, Quantity};
use bigfleet_wire::v1alpha1 as wire;
use prost::Message;

use crate::rebalance::Figures;

/// Rows of a report past this are dropped.
const MAX_SHORTFALLS: usize = 100;
/// Pools past this are dropped; the shard sends the largest first.
const MAX_POOLS: usize = 256;
/// A shortfall older than this many cycles is escalated.
const ESCALATED_AFTER: i32 = 5;

/// What is kept of a report.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// A `ShardReportSnapshot`.
    bytes: Box<[u8]>,
    pub(super) provider_address: Box<str>,
    pub(super) escalated: Escalated,
    /// Of a shared-scope shard: what rebalancing looks at.
    pub(super) figures: Option<Arc<Figures>>,
}

/// Shortfalls that have waited too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Escalated {
    /// Those that must stay together; they never cross shards.
    pub same: u32,
    /// All others.
    pub other: u32,
}

impl Kept {
    /// Keeps the summary and the whole list of shortfalls but those that mean nothing,
    /// of which it tells the number.
    pub(super) fn new(report: &mut wire::ShardReport, received_at_unix_ns: i64) -> (Self, u64) {
        let mut summary = report.summary.take().unwrap_or_default();
        summary.pools.truncate(MAX_POOLS);
        let mut shortfalls = std::mem::take(&mut report.shortfalls);
        shortfalls.truncate(MAX_SHORTFALLS);
        let sent = shortfalls.len();
        shortfalls.retain(is_sound);
        let dropped = (sent - shortfalls.len()) as u64;
        let mut escalated = Escalated::default();
        for shortfall in shortfalls.iter().filter(|one| one.age_cycles > ESCALATED_AFTER) {
            let same = |one: &wire::NodeSelectorRequirement| {
                Operator::from_wire(one.operator) == Some(Operator::Same)
            };
            match shortfall.requirements.iter().any(same) {
                true => escalated.same += 1,
                false => escalated.other += 1,
            }
        }
        let provider_address = summary.provider_address.as_str().into();
        let shared = report.assignment_digest != 0;
        let figures = shared.then(|| Arc::new(Figures::of(&summary, &shortfalls)));
        let snapshot = wire::ShardReportSnapshot {
            shard_id: report.shard_id.clone(),
            cycle: report.cycle,
            received_at_unix_ns,
            summary: Some(summary),
            shortfalls,
        };
        let bytes = snapshot.encode_to_vec().into_boxed_slice();
        (Self { bytes, provider_address, escalated, figures }, dropped)
    }

    pub(super) fn snapshot(&self) -> wire::ShardReportSnapshot {
        // They were encoded here.
        wire::ShardReportSnapshot::decode(&*self.bytes).unwrap_or_default()
    }
}

fn is_sound(shortfall: &wire::Shortfall) -> bool {
    let quantities = |resources: &Option<wire::Resources>| {
        resources
            .iter()
            .flat_map(|one| one.resources.values())
            .all(|text| text.parse::<Quantity>().is_ok())
    };
    quantities(&shortfall.deficit)
        && quantities(&shortfall.min_unit)
        && PenaltyBucket::from_wire(shortfall.interruption_penalty_bucket).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §15 reckons with 45 KB a shard: what is kept is not more than what was sent, but
    /// for the time of receipt.
    #[test]
    fn a_report_is_kept_as_small_as_it_was_sent() {
        let resources = wire::Resources { resources: [("cpu".into(), "250m".into())].into() };
        let pool = wire::PoolRow {
            instance_type: "m6i.large".into(),
            zone: "eu-west-1a".into(),
            allocatable: Some(resources.clone()),
            idle: 7,
            ..wire::PoolRow::default()
        };
        let shortfall = wire::Shortfall { deficit: Some(resources), ..wire::Shortfall::default() };
        let summary =
            wire::ShardSummary { pools: vec![pool; 300], ..wire::ShardSummary::default() };
        let mut report = wire::ShardReport {
            shard_id: "shard-0".into(),
            cycle: 7,
            summary: Some(summary),
            shortfalls: vec![shortfall; 100],
            ..wire::ShardReport::default()
        };
        let sent = report.encoded_len();
        let (kept, dropped) = Kept::new(&mut report, i64::MAX);
        assert_eq!(dropped, 0);
        assert!(kept.bytes.len() < sent, "{} of {sent}", kept.bytes.len());
        let snapshot = kept.snapshot();
        assert_eq!(snapshot.summary.unwrap().pools.len(), MAX_POOLS);
        assert_eq!((snapshot.shortfalls.len(), snapshot.received_at_unix_ns), (100, i64::MAX));
    }
}
