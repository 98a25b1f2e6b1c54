//! The total order of needs (§5).

use std::cmp::Ordering;

use bigfleet_model::PenaltyBucket;

use crate::need::Prepared;

/// Priority, interruption bucket, reclamation bucket: the precedence. Needs of
/// equal precedence form a tier (§5).
pub(crate) fn precedence(need: &Prepared) -> (i32, PenaltyBucket, PenaltyBucket) {
    (need.profile.priority(), need.profile.interruption(), need.profile.reclamation())
}

/// Who is served first (§5).
pub(crate) fn total(a: &Prepared, b: &Prepared) -> Ordering {
    precedence(b)
        .cmp(&precedence(a))
        .then_with(|| a.arrival.cmp(&b.arrival))
        .then_with(|| a.cluster.cmp(&b.cluster))
        .then_with(|| a.profile.fingerprint().cmp(b.profile.fingerprint()))
        .then_with(|| a.group.cmp(&b.group))
        .then_with(|| a.aggregate.cmp_by_name(&b.aggregate))
}
