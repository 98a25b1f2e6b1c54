//! What a replica does by the clock.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bigfleet_model::FleetId;
use openraft::ServerState;
use tokio::time::{Instant, sleep, timeout};

use super::{
    fleet,
    handle::{Leadership, Shared},
    peers::Phase,
    timers::Compaction,
    types::LogId,
};

/// A forming replica that sees no leader for this long starts over.
const FORMING_PATIENCE: Duration = Duration::from_secs(60);
/// Every address is asked this often whether a newer fleet exists.
const SUCCESSORS: Duration = Duration::from_secs(60);
/// How often free space is looked at.
const SPACE: Duration = Duration::from_secs(5);

impl Shared {
    /// Publishes leadership, notices failures, wipes what never formed.
    pub(super) async fn tend(self: Arc<Self>) {
        let mut led_at = Instant::now();
        let mut space_at = Instant::now() + SPACE;
        loop {
            sleep(self.config.timers.heartbeat / 8).await;
            let now = self.observe();
            if now != Leadership::None {
                led_at = Instant::now();
            }
            self.leadership.send_if_modified(|old| {
                let changed = *old != now;
                *old = now;
                changed
            });
            if let Some(running) = self.running() {
                let metrics = running.raft.metrics();
                let metrics = metrics.borrow();
                if let Err(error) = &metrics.running_state
                    && metrics.state == ServerState::Shutdown
                    && !matches!(error, openraft::error::Fatal::Stopped)
                {
                    self.fail(error.to_string());
                }
            }
            if led_at.elapsed() >= FORMING_PATIENCE && self.phase() == Phase::Forming {
                tracing::warn!("no leader for 60 s while forming: starting over");
                self.wipe().await;
                led_at = Instant::now();
            }
            if Instant::now() >= space_at {
                space_at = Instant::now() + SPACE;
                let low = self.check_space();
                if let Some(running) = self.running() {
                    running.abstain.store(low, Ordering::Relaxed);
                    if low && running.serving_term().is_some() {
                        tracing::warn!("less than 128 MiB free: handing leadership away");
                        let _ = running.raft.trigger().snapshot().await;
                        self.hand_over().await;
                    }
                }
            }
        }
    }

    /// Snapshots what has been applied, which lets the log before it go.
    pub(super) async fn compact(self: Arc<Self>) {
        loop {
            let Compaction { interval, entries, trailing, bytes } = self.config.compaction;
            // Three quarters to five quarters of the interval.
            sleep(self.world.entropy.spread(interval / 2) + interval / 4).await;
            let Some(running) = self.running() else { continue };
            let (applied, snapshot, purged) = {
                let metrics = running.raft.metrics();
                let metrics = metrics.borrow();
                let index = |at: Option<LogId>| at.map(|at| at.index);
                (index(metrics.last_applied), index(metrics.snapshot), index(metrics.purged))
            };
            let next = |at: Option<u64>| at.map_or(0, |index| index + 1);
            let new = next(applied).saturating_sub(next(snapshot));
            let heavy = new > 0 && running.log.weight_after(snapshot) >= bytes / 2;
            if new >= entries || heavy {
                let _ = running.raft.trigger().snapshot().await;
            }
            // What is still only in the log stays, however large.
            let behind = snapshot.and_then(|at| at.checked_sub(trailing));
            let gone = running.log.surplus(bytes).max(behind).min(snapshot);
            if gone > purged
                && let Some(gone) = gone
            {
                let _ = running.raft.trigger().purge_log(gone).await;
            }
        }
    }

    /// Asks every address for a newer history of this fleet.
    pub(super) async fn look_for_successors(self: Arc<Self>) {
        let Some(peers) = self.world.peers.clone() else { return };
        loop {
            sleep(SUCCESSORS).await;
            let Some(mine) = self.fleet_name() else { continue };
            let Ok(statuses) = timeout(Duration::from_secs(10), peers.statuses()).await else {
                continue;
            };
            let named = statuses.into_iter().flatten();
            let fleets = named.filter_map(|status| status.fleet_id.parse::<FleetId>().ok());
            let newest = fleets.filter(|fleet| fleet::supersedes(fleet, &mine));
            if let Some(newest) = newest.max_by_key(FleetId::generation)
                && self.superseded_by().is_none()
            {
                self.supersede(&newest).await;
            }
        }
    }
}
