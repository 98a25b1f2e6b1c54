//! Demand of clusters that are not ours (coordinator chapter §8).

use bigfleet_engine::Engine;
use bigfleet_model::ClusterId;

use super::{Serving, Shared, lock};
use crate::{session::RollUpAnswer, shard::Shard};

impl Shard {
    /// What the operator of a cluster hears that is not served here; none if it is.
    pub(crate) fn unserved(&self, cluster: &ClusterId) -> Option<RollUpAnswer> {
        let shared = self.shared.as_ref()?;
        match shared.serving(cluster) {
            Serving::Yes => None,
            // For moments: its machines are read, and then its demand counts.
            Serving::TakenOver => Some(RollUpAnswer::Held),
            Serving::No => {
                let text = match lock(&shared.elsewhere).get(cluster) {
                    Some(holder) => format!(
                        "cluster bound to shard {holder}; connect its operator there, or move it \
                         here with bigfleetctl move-cluster --cluster {cluster} --from {holder} --to {}",
                        self.options.id
                    ),
                    None => "cluster bound to no shard yet; nothing is done for it here until \
                             the coordinator gives it to this shard"
                        .to_owned(),
                };
                tracing::info!(%cluster, "a roll-up of a cluster that is not served here");
                Some(self.needs.reject(cluster, text))
            }
        }
    }

    /// Gives the engine what changed in what is ours.
    pub(crate) fn take_in_holdings(
        &self,
        shared: &Shared,
        engine: &mut Engine,
        rolled_up: &mut Vec<ClusterId>,
    ) {
        for cluster in shared.take_lost_clusters() {
            engine.replace(&cluster, &[]);
            engine.set_ready(&cluster, false);
            rolled_up.push(cluster);
        }
        let live = self.live();
        shared.renew_quota(engine, |machine| {
            live.entries.get(machine).is_some_and(|entry| entry.pending.is_some())
        });
    }
}
