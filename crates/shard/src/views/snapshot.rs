//! All rows of one cycle.

use std::sync::{Arc, OnceLock};

use bigfleet_engine::NeedKey;
use bigfleet_model::ClusterId;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::NeedRow;

/// Rows in the order of their cluster.
type Rows = Arc<Vec<Arc<NeedRow>>>;

/// The rows as one cycle left them. Before the first it is empty and of cycle 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct NeedSnapshot {
    pub(crate) cycle: u64,
    /// Unix nanoseconds.
    pub(crate) computed_at: i64,
    clusters: HashMap<ClusterId, Rows, RandomState>,
    total: usize,
    /// Rows of all clusters in order, once somebody has asked.
    sorted: OnceLock<Rows>,
}

/// A row that was put in the place of another.
pub(super) struct Put {
    pub(super) before: Option<Arc<NeedRow>>,
    pub(super) row: Arc<NeedRow>,
}

impl NeedSnapshot {
    /// How many there are.
    pub(crate) const fn total(&self) -> usize {
        self.total
    }

    /// Rows of a cluster, in the order of all rows.
    pub(crate) fn of(&self, cluster: &str) -> &[Arc<NeedRow>] {
        self.clusters.get(cluster).map_or(&[], |rows| rows)
    }

    /// Whether a cluster wants anything.
    pub(crate) fn wants(&self, cluster: &str) -> bool {
        self.clusters.contains_key(cluster)
    }

    /// All rows in order. The first to ask sorts.
    pub(crate) fn sorted(&self) -> Rows {
        let sort = || {
            let mut rows: Vec<Arc<NeedRow>> = Vec::with_capacity(self.total);
            rows.extend(self.clusters.values().flat_map(|rows| rows.iter().cloned()));
            rows.sort_unstable_by(|a, b| a.order(b));
            Arc::new(rows)
        };
        self.sorted.get_or_init(sort).clone()
    }

    /// One need.
    pub(crate) fn get(&self, need: &NeedKey) -> Option<&Arc<NeedRow>> {
        let is = |row: &&Arc<NeedRow>| {
            row.need.group == need.group && *row.need.profile.fingerprint() == need.fingerprint
        };
        self.of(&need.cluster).iter().find(is)
    }

    pub(super) fn begin(&mut self, cycle: u64, computed_at: i64) {
        (self.cycle, self.computed_at) = (cycle, computed_at);
        self.sorted.take();
    }

    /// Puts a row in its place.
    pub(super) fn put(&mut self, mut row: NeedRow) -> Put {
        let rows = self.clusters.entry_ref(&row.need.cluster).or_default();
        let rows = Arc::make_mut(rows);
        match rows.binary_search_by(|known| known.order_in_cluster(&row)) {
            Ok(at) => {
                row.inherit(&rows[at]);
                let row = Arc::new(row);
                let before = Some(std::mem::replace(&mut rows[at], row.clone()));
                Put { before, row }
            }
            Err(at) => {
                let row = Arc::new(row);
                rows.insert(at, row.clone());
                self.total += 1;
                Put { before: None, row }
            }
        }
    }

    /// Drops rows of a cluster, and hands them back.
    pub(super) fn retain(
        &mut self,
        cluster: &ClusterId,
        keep: impl Fn(&NeedKey) -> bool,
    ) -> Vec<Arc<NeedRow>> {
        let Some(rows) = self.clusters.get_mut(cluster) else { return Vec::new() };
        let rows = Arc::make_mut(rows);
        let gone: Vec<Arc<NeedRow>> = rows.extract_if(.., |row| !keep(&row.key())).collect();
        if rows.is_empty() {
            self.clusters.remove(cluster);
        }
        self.total -= gone.len();
        gone
    }
}
