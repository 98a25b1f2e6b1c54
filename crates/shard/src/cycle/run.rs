//! When cycles fire: on a ticker, and when something calls for one (§4).

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Cycle;
use crate::{hints::Hints, shard::Shard};

/// Two cycles start at least so far apart.
const APART: Duration = Duration::from_millis(100);

/// Cycles until told to stop.
pub(crate) async fn run(shard: Arc<Shard>, hints: Hints, stop: CancellationToken) {
    let mut cycle = Cycle::new(hints);
    let mut ticker = interval(shard.options.cycle_interval);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next: Option<Instant> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            at = ticker.tick() => shard.reconciler.expect_tick(at + shard.options.cycle_interval),
            () = shard.woken() => {}
        }
        if let Some(at) = next {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep_until(at) => {}
            }
        }
        next = Some(Instant::now() + APART);
        cycle.run(&shard).await;
        shard.note_cycle();
    }
}
