//! What consensus alone knows, as metrics.

use std::{sync::Arc, time::Duration};

use bigfleet_net::shutdown::Shutdown;

use crate::{
    consensus::{Consensus, Leadership},
    metrics::Metrics,
};

const EVERY: Duration = Duration::from_secs(1);

/// Counts leaderships as they are observed and shows how far the log is.
pub(super) async fn leadership(consensus: Consensus, metrics: Arc<Metrics>, stop: Shutdown) {
    let mut changes = consensus.watch_leadership();
    let mut last = None;
    loop {
        let observed = changes.borrow_and_update().clone();
        let status = consensus.status();
        if observed != Leadership::None {
            // A lease that was lost and held again is the same leadership.
            let leadership = (status.leader_id, status.term);
            if last.as_ref() != Some(&leadership) {
                metrics.leader_changes.inc();
                last = Some(leadership);
            }
        }
        metrics.progress(status.commit_index, status.applied_index, consensus.snapshot_bytes());
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(EVERY) => {}
            () = stop.requested() => return,
        }
    }
}
