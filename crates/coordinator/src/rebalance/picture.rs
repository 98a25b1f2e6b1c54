//! What a pass looks at: taken in a moment, looked at for as long as it takes.

use std::{collections::BTreeMap, sync::Arc};

use super::Figures;
use crate::state::{ShardId, Transfer, TransferId};

/// The fleet at one moment, as far as rebalancing is concerned.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Shards that take part: Live, in shared scope, with a provider that others can
    /// share. By name.
    pub shards: BTreeMap<ShardId, Arc<Figures>>,
    /// All transfers that have not ended.
    pub transfers: BTreeMap<TransferId, Transfer>,
}

/// How much of the fleet a new leader has heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Registered shards.
    pub registered: usize,
    /// Those that reported to this leader.
    pub reported: usize,
}

impl Heard {
    /// Whether it is nearly all: 90 %.
    #[must_use]
    pub const fn nearly_all(self) -> bool {
        self.reported * 10 >= self.registered * 9
    }
}
