//! Series of clusters, and their end.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bigfleet_model::ClusterId;
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};

use super::{labels::OfCluster, level::Fraction};

/// How long the series of a cluster outlive its last session and demand.
pub const CLUSTER_SERIES_KEPT: Duration = Duration::from_secs(3600);

/// What is counted per cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    pub(super) quarantined: Family<OfCluster, Gauge>,
    pub(super) rejected: Family<OfCluster, Counter>,
    pub(super) age: Family<OfCluster, Fraction>,
    /// Clusters with series, and since when they have been gone.
    gone: Arc<Mutex<HashMap<ClusterId, Option<Instant>>>>,
}

impl Clusters {
    pub(super) fn quarantined(&self, cluster: &ClusterId, in_a_row: i64) {
        self.quarantined.get_or_create(&self.labels(cluster)).set(in_a_row);
    }

    pub(super) fn rejected(&self, cluster: &ClusterId) {
        self.rejected.get_or_create(&self.labels(cluster)).inc();
    }

    pub(super) fn age(&self, cluster: &ClusterId, age: Duration) {
        self.age.get_or_create(&self.labels(cluster)).set(age.as_secs_f64());
    }

    pub(super) fn retire(&self, now: Instant, mut present: impl FnMut(&ClusterId) -> bool) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.retain(|cluster, since| {
            if present(cluster) {
                *since = None;
                return true;
            }
            let since = *since.get_or_insert(now);
            let keep = now.saturating_duration_since(since) < CLUSTER_SERIES_KEPT;
            if !keep {
                let labels = OfCluster { cluster: cluster.to_string() };
                self.quarantined.remove(&labels);
                self.rejected.remove(&labels);
                self.age.remove(&labels);
            }
            keep
        });
    }

    fn labels(&self, cluster: &ClusterId) -> OfCluster {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        if !gone.contains_key(cluster) {
            gone.insert(cluster.clone(), None);
        }
        OfCluster { cluster: cluster.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_end_an_hour_after_the_cluster() {
        let clusters = Clusters::default();
        let (a, b) = (ClusterId::from("a"), ClusterId::from("b"));
        for cluster in [&a, &b] {
            clusters.quarantined(cluster, 1);
            clusters.rejected(cluster);
            clusters.age(cluster, Duration::from_secs(1));
        }
        let sizes = || {
            let labels = ["a", "b"].map(|name| OfCluster { cluster: name.to_owned() });
            [
                labels.iter().filter(|labels| clusters.quarantined.get(labels).is_some()).count(),
                labels.iter().filter(|labels| clusters.rejected.get(labels).is_some()).count(),
                labels.iter().filter(|labels| clusters.age.get(labels).is_some()).count(),
            ]
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        clusters.retire(at(0), |_| false);
        clusters.retire(at(3599), |_| false);
        assert_eq!(sizes(), [2; 3]);
        // One comes back in time: its hour begins anew when it goes again.
        clusters.retire(at(3599), |cluster| *cluster == a);
        clusters.retire(at(3600), |_| false);
        assert_eq!(sizes(), [1; 3]);
        clusters.retire(at(7199), |_| false);
        assert_eq!(sizes(), [1; 3]);
        clusters.retire(at(7200), |_| false);
        assert_eq!(sizes(), [0; 3]);
    }
}
