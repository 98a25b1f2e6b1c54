//! Where the leader's periodic backups begin.

use std::sync::Arc;

use bigfleet_net::{Error as NetError, shutdown::Shutdown};
use tokio::task::JoinSet;

use crate::{consensus::Consensus, flags::ExportFlags, metrics::Metrics};

/// Starts what writes backups while this replica leads, if the flags ask for it.
pub(super) fn spawn(
    flags: &ExportFlags,
    _consensus: &Consensus,
    _metrics: &Arc<Metrics>,
    _stop: &Shutdown,
    _tasks: &mut JoinSet<Result<(), NetError>>,
) {
    if let Some(dir) = flags.dir() {
        tracing::warn!(dir = %dir.display(), "this version writes no backups by itself: save them");
    }
}
