//! Needs for which no node can be bootstrapped now (§6, §7).

use std::collections::BTreeSet;

use bigfleet_engine::{Engine, NeedKey, NoAcquire};
use bigfleet_model::ClusterId;

use crate::shard::Shard;

impl Shard {
    /// Tells the engine which needs of a cluster may not acquire.
    pub(super) fn renew_holds(&self, engine: &mut Engine, cluster: &ClusterId) {
        if self.options.local_bootstrap {
            return;
        }
        // No blob can be had, so buying is a money loop.
        let away = (!self.sessions.is_connected(cluster)).then_some(NoAcquire::NoSession);
        let refusals = self.refusals();
        let refused = refusals.of_cluster(cluster);
        let refused: BTreeSet<NeedKey> =
            refused.flat_map(|profile| engine.needs_like(cluster, profile)).collect();
        let holds = away.is_some() || !refused.is_empty();
        // As nearly always: nothing is held, and nothing was.
        if !self.held().remove(cluster) && !holds {
            return;
        }
        if holds {
            self.held().insert(cluster.clone());
        }
        for need in engine.needs_of(cluster) {
            let refused = refused.contains(&need).then_some(NoAcquire::BootstrapRefused);
            engine.hold(&need, away.or(refused));
        }
    }
}
