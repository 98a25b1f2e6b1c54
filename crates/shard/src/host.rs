//! The shard as its sessions see it (§6, §12).

use std::sync::{Arc, Weak, atomic::Ordering};

use bigfleet_model::{ClusterId, MachineId};
use bigfleet_wire::v1alpha1 as wire;
use futures_util::future::BoxFuture;

use crate::{
    session::{Host, RollUpAnswer},
    shard::Shard,
};

/// Machines told in one hold of the locks.
const CHUNK: usize = 256;

/// Sessions outlive nothing: they hold the shard weakly.
#[derive(Clone)]
pub(crate) struct ShardHost(pub(crate) Weak<Shard>);

impl Host for ShardHost {
    fn epoch(&self) -> i64 {
        self.0.upgrade().map_or(0, |shard| shard.epoch)
    }

    fn coordinator_term(&self) -> i64 {
        let shard = self.0.upgrade();
        shard.map_or(0, |shard| shard.coordinator_term.load(Ordering::Relaxed))
    }

    fn roll_up(
        &self,
        cluster: &ClusterId,
        message: wire::ClusterCapacityNeeds,
        still_current: &dyn Fn() -> bool,
    ) -> RollUpAnswer {
        let Some(shard) = self.0.upgrade() else { return RollUpAnswer::Dropped };
        if let Some(answer) = shard.unserved(cluster) {
            return answer;
        }
        let configured = shard.configured.load().get(cluster).copied().unwrap_or(0);
        let wall = shard.clock.wall();
        let answer = shard.needs.ingest(cluster, message, wall, configured, still_current);
        match &answer {
            RollUpAnswer::Accepted => shard.wake(),
            RollUpAnswer::Rejected(error) => {
                shard.metrics.rollup_rejected(cluster);
                tracing::error!(%cluster, error, "roll-up refused; the last good demand stays");
            }
            RollUpAnswer::Held | RollUpAnswer::Dropped => {}
        }
        if let Some(demand) = shard.needs.view(cluster) {
            shard.metrics.rollup_quarantined(cluster, demand.held);
        }
        answer
    }

    fn replay(&self, cluster: ClusterId) -> BoxFuture<'static, ()> {
        let shard = self.0.clone();
        Box::pin(async move {
            if let Some(shard) = shard.upgrade() {
                shard.replay(&cluster).await;
            }
        })
    }

    fn session_changed(&self, cluster: &ClusterId) {
        if let Some(shard) = self.0.upgrade() {
            shard.note_session(cluster);
        }
    }

    fn resynced(&self, cluster: &ClusterId) {
        if let Some(shard) = self.0.upgrade() {
            shard.note_resynced(cluster);
        }
    }
}

impl Shard {
    /// Tells a new session of every machine of its cluster. Each frame is built from
    /// the inventory as it is when the frame is queued, so none is older than one
    /// that was queued before.
    async fn replay(self: &Arc<Self>, cluster: &ClusterId) {
        self.reconciled().await;
        if let Some(shared) = &self.shared {
            // Told of nothing, the operator would take all its machines for gone.
            shared.served(cluster).await;
        }
        let machines: Vec<MachineId> = self.desk().await.machines_of(cluster);
        for chunk in machines.chunks(CHUNK) {
            self.desk().await.replay(cluster, chunk);
        }
    }

    /// Waits until the shard may act again.
    pub(crate) async fn until_acting(&self) {
        let mut mode = self.actuation.subscribe();
        loop {
            if self.may_act() {
                return;
            }
            if self.fence.is_latched() {
                // For a human to decide.
                std::future::pending::<()>().await;
            }
            if mode.changed().await.is_err() {
                return;
            }
        }
    }
}
