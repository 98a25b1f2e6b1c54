//! What a cycle leaves behind for others to see: gauges, histograms, and a frame
//! for whoever watches. Machines are counted at most once a second.

mod summary;

use std::{sync::Arc, time::Duration};

use bigfleet_engine::{Census, Ledger};
use bigfleet_model::MachineState;
use tokio::time::Instant;

pub(crate) use summary::{MAX_BEHIND, Summaries};

use crate::{
    cycle::{Laps, Summary},
    metrics::{AgeBucket, PriorityClass},
    shard::{Decider, Shard},
    views::Counts,
};

/// What takes a look at everything is done once in so long.
const SELDOM: Duration = Duration::from_secs(1);
/// Unchanged between two states for so long, a machine is stuck.
const STUCK: Duration = Duration::from_secs(1800);

/// The cycle's own memory of what it published.
#[derive(Default)]
pub(crate) struct Publisher {
    counted: Option<(Instant, Census)>,
}

impl Publisher {
    /// After a cycle.
    pub(crate) fn publish(
        &mut self,
        shard: &Shard,
        decider: &Decider,
        needs: &Counts,
        summary: &Summary,
        laps: &Laps,
    ) {
        let due = self.counted.as_ref().is_none_or(|(at, _)| at.elapsed() >= SELDOM);
        if due {
            let census = decider.engine.census();
            shard.publish_census(&census);
            shard.publish_seldom();
            self.counted = Some((Instant::now(), census));
        }
        let classes = shard.publish_shortfalls(&decider.ledger);
        shard.metrics.needs_unmet(|reason| needs.unmet_for(reason));
        shard.metrics.demand(needs.buckets());
        shard.publish_waiting();
        if summary.cycle > shard.options.metrics_warmup_cycles {
            laps.taken.iter().for_each(|(phase, took)| shard.metrics.phase(*phase, *took));
            let whole: Duration = laps.taken.iter().map(|(_, took)| *took).sum();
            shard.metrics.cycle_duration.observe(whole.as_secs_f64());
        }
        let census = self.counted.as_ref().map(|(_, census)| census);
        let frame = summary::frame(shard, summary, laps, census, needs, &classes);
        shard.summaries.send(frame);
    }
}

/// Shortfalls by class.
type Classes = [usize; PriorityClass::ALL.len()];

impl Shard {
    /// What changes without a decision, too.
    pub(crate) fn publish_waiting(&self) {
        let metrics = &self.metrics;
        let set = |gauge: &prometheus_client::metrics::gauge::Gauge, count: usize| {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        set(&metrics.active_sessions, self.sessions.count());
        set(&metrics.action_queue_depth, self.queue.depth());
        set(&metrics.execute_inflight, self.queue.running());
        set(&metrics.removals_held, self.reconciler.removals_held());
        // As old as the process while there is none.
        let last = self.reconciler.last_good().unwrap_or_else(|| self.clock.started());
        metrics.last_reconcile_age.set(last.elapsed().as_secs_f64());
    }

    fn publish_census(&self, census: &Census) {
        let by_state = || census.by_state.iter();
        self.metrics.inventory(by_state().map(|(cell, count)| (*cell, count.machines)));
        let mut cost = std::collections::BTreeMap::<_, f64>::new();
        // What costs nothing is known to: its sum is 0, not absent.
        for ((state, capacity, _), count) in by_state().filter(|(_, count)| count.hosted > 0) {
            *cost.entry((*capacity, *state)).or_default() += count.price;
        }
        self.metrics.cost(cost);
        let configured = census.configured.iter().map(|(cluster, count)| (cluster.clone(), *count));
        self.configured.store(Arc::new(configured.collect()));
    }

    /// What takes a look at every session or cluster.
    fn publish_seldom(&self) {
        let depth = i64::try_from(self.sessions.outbox_depth()).unwrap_or(i64::MAX);
        self.metrics.outbox_depth.set(depth);
        let rows = self.needs_read.load();
        for demand in self.needs.views() {
            // One that is gone for good must not be kept alive by its own silence.
            let present =
                rows.wants(&demand.cluster) || self.sessions.is_connected(&demand.cluster);
            if let Some(accepted) = demand.accepted_at.filter(|_| present) {
                self.metrics.rollup_age(&demand.cluster, accepted.elapsed());
            }
        }
        self.metrics.retire_clusters(Instant::now().into_std(), |cluster| {
            rows.wants(cluster) || self.sessions.is_connected(cluster)
        });
        let live = self.live();
        let mut stuck = [0_usize; MachineState::Failed as usize + 1];
        for (state, since) in live.passing.values() {
            stuck[*state as usize] += usize::from(since.elapsed() >= STUCK);
        }
        drop(live);
        self.metrics.machines_stuck(|state| stuck[state as usize]);
    }

    fn publish_shortfalls(&self, ledger: &Ledger) -> Classes {
        let mut ages = [0_usize; AgeBucket::ALL.len()];
        let mut classes = Classes::default();
        for entry in ledger.entries() {
            ages[AgeBucket::of(entry.age) as usize] += 1;
            classes[PriorityClass::of(entry.profile.priority()) as usize] += 1;
        }
        self.metrics.shortfalls.set(i64::try_from(ledger.len()).unwrap_or(i64::MAX));
        self.metrics.shortfalls_aged(|age| ages[age as usize]);
        self.metrics.shortfalls_by_priority(|class| classes[class as usize]);
        classes
    }
}
