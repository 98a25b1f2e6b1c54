//! Bounds of a shard's histograms.

pub(super) use bigfleet_net::buckets::Buckets;

/// A cycle: 5 s at most, alert at 1 s, 100 ms with aggregated demand.
pub(super) const CYCLE: Buckets = Buckets::doubling(0.001, 14)
    .with(&[0.08, 0.09, 0.1, 0.11, 0.12, 0.8, 0.9, 1.0, 1.1, 1.2, 4.0, 4.5, 5.0, 5.5, 6.0]);
/// A phase of a cycle.
pub(super) const PHASE: Buckets = Buckets::doubling(0.001, 14);
/// From demand to a node: 15 s at most.
pub(super) const PROVISIONING: Buckets =
    Buckets::doubling(0.01, 20).with(&[12.5, 14.0, 15.0, 16.0, 17.5]);
/// A step of a machine's way.
pub(super) const STEP: Buckets = Buckets::doubling(0.01, 16);
/// Configuring: 15 s at most with a provider that answers at once, alert at 5 minutes.
pub(super) const CONFIGURE: Buckets =
    STEP.with(&[12.5, 14.0, 15.0, 16.0, 17.5, 250.0, 275.0, 300.0]);
/// How long people wait: a minute, five, or thirty, by their priority.
pub(super) const WAIT: Buckets = Buckets::doubling(1.0, 14)
    .with(&[50.0, 55.0, 60.0, 70.0, 275.0, 300.0, 330.0, 360.0, 1500.0, 1650.0, 1800.0, 1950.0]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_reach_far_enough() {
        assert_eq!(PHASE.bounds()[13], 8.192);
        assert_eq!(STEP.bounds()[15], 327.68);
        assert_eq!(CONFIGURE.bounds().last(), Some(&327.68));
        assert_eq!(WAIT.bounds().last(), Some(&8192.0));
        assert_eq!(PROVISIONING.bounds().last(), Some(&5242.88));
    }

    #[test]
    fn no_bucket_beside_an_objective_is_wider_than_a_fifth_of_it() {
        for (buckets, objective) in [
            (CYCLE, 0.1),
            (CYCLE, 1.0),
            (CYCLE, 5.0),
            (PROVISIONING, 15.0),
            (CONFIGURE, 15.0),
            (CONFIGURE, 300.0),
            (WAIT, 60.0),
            (WAIT, 300.0),
            (WAIT, 1800.0),
        ] {
            assert!(buckets.resolve(objective), "{objective}");
        }
    }
}
