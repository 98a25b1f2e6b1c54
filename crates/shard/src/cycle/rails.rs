//! The rails between decision and execution (§10): they delay or withhold, and
//! never reorder or invent.

use std::time::Duration;

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::ClusterId;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

use crate::{
    actuation::Mode,
    execute::{Job, Step},
    live::{Desk, Stage},
    outcome::{Disposition, Kind, Outcome},
    shard::Shard,
};

/// Intervals after which an inventory is too old to evict by.
const STALE_AFTER: u32 = 3;

/// What the rails remember.
#[derive(Default)]
pub(crate) struct Rails {
    budgets: Budgets,
}

/// Reclaims that each cluster has had in this interval, so that wake-ups do not
/// multiply the cap.
#[derive(Default)]
struct Budgets {
    since: Option<Instant>,
    spent: HashMap<ClusterId, usize, RandomState>,
}

impl Budgets {
    fn renew(&mut self, interval: Duration) {
        if self.since.is_none_or(|since| since.elapsed() >= interval) {
            self.since = Some(Instant::now());
            self.spent.clear();
        }
    }

    /// Takes one of `cap` reclaims.
    fn spend(&mut self, cluster: &ClusterId, cap: usize) -> bool {
        let spent = self.spent.entry_ref(cluster).or_default();
        let goes = *spent < cap;
        *spent += usize::from(goes);
        goes
    }
}

impl Rails {
    /// What may be carried out, in the order in which it was decided.
    pub(super) fn pass(
        &mut self,
        desk: &Desk<'_>,
        actions: Vec<Action>,
        cycle: u64,
    ) -> Vec<Action> {
        let shard = desk.shard;
        if shard.fence.is_latched() || !shard.is_open() {
            return Vec::new();
        }
        match shard.actuation.mode() {
            Mode::Active => {}
            Mode::Paused => return withhold(desk, &actions, cycle, Disposition::Suppressed),
            Mode::DryRun => return withhold(desk, &actions, cycle, Disposition::DryRun),
        }
        let stale = shard.is_inventory_stale();
        let held = shard.reconciler.removals_held() > 0;
        let mut passed = Vec::with_capacity(actions.len());
        self.budgets.renew(shard.options.cycle_interval);
        for action in actions {
            let kind = Kind::from(&action.kind);
            let withheld = match kind {
                Kind::Reclaim | Kind::Preempt | Kind::Delete if stale => {
                    Some(Outcome::StaleInventory)
                }
                Kind::Provision | Kind::Reclaim | Kind::Delete if held => {
                    Some(Outcome::RemovalsHeld)
                }
                _ => None,
            };
            if let Some(outcome) = withheld {
                shard.metrics.executed(kind, outcome);
            } else if kind == Kind::Delete && desk.live.undeletable.contains(&action.machine) {
                // Its provider cannot.
            } else if self.is_capped(desk, &action) {
                shard.metrics.reclaims_capped.inc();
            } else {
                passed.push(action);
            }
        }
        shard.limit_actions(passed)
    }

    fn is_capped(&mut self, desk: &Desk<'_>, action: &Action) -> bool {
        let Some(fraction) = desk.shard.options.reclaim_cap_fraction else { return false };
        let ActionKind::Reclaim { cluster, .. } = &action.kind else { return false };
        let configured = desk.decider.engine.configured_in(cluster);
        let cap = ((fraction * configured as f64).floor() as usize).max(1);
        !self.budgets.spend(cluster, cap)
    }
}

/// Counts and records what the brake keeps from being done.
fn withhold(desk: &Desk<'_>, actions: &[Action], cycle: u64, how: Disposition) -> Vec<Action> {
    for action in actions {
        let kind = Kind::from(&action.kind);
        match how {
            Disposition::DryRun => desk.shard.metrics.dryrun(kind),
            _ => desk.shard.metrics.suppressed(kind),
        }
        desk.record(action, cycle, how);
    }
    Vec::new()
}

impl Shard {
    /// Keeps the head; the rest is decided again at once.
    fn limit_actions(&self, mut actions: Vec<Action>) -> Vec<Action> {
        let most = self.options.max_actions_per_cycle.unwrap_or(usize::MAX);
        if actions.len() > most {
            self.metrics.actions_deferred.inc_by((actions.len() - most) as u64);
            actions.truncate(most);
            self.wake();
        }
        actions
    }

    /// The provider has been silent for too long to evict anybody.
    pub(crate) fn is_inventory_stale(&self) -> bool {
        let limit = self.options.cycle_interval * STALE_AFTER;
        self.reconciler.last_good().is_none_or(|last| last.elapsed() > limit)
    }
}

impl Desk<'_> {
    /// Hands an action to the workers, if it still means something and there is a
    /// place (§7).
    pub(super) fn enqueue(&mut self, action: Action, cycle: u64) -> bool {
        let metrics = &self.shard.metrics;
        let (machine, kind) = (action.machine.clone(), Kind::from(&action.kind));
        let Some(state) = self.state(&machine) else {
            // Dropped by its provider while we decided.
            metrics.executed(kind, Outcome::InventoryMiss);
            return false;
        };
        if state != action.kind.start() || self.live.pending(&machine).is_some() {
            metrics.actions_deduped.inc();
            return false;
        }
        let cluster = match &action.kind {
            ActionKind::Bootstrap(bound) => Some(bound.cluster.clone()),
            _ => None,
        };
        if !self.is_allowed(&action) {
            metrics.actions_deduped.inc();
            return false;
        }
        // The place stays ours: whoever fills the queue sits at a desk, and this is it.
        if !self.shard.queue.has_place(kind) {
            metrics.actions_dropped.inc();
            self.shard.note_dropped();
            return false;
        }
        metrics.action(kind);
        let decision = self.record(&action, cycle, Disposition::Decided);
        self.begin(action, decision);
        self.queue_again(Job { machine, kind, decision, step: Step::Act(cluster) });
        true
    }

    /// Whether a shared provider's machine is ours to act on, and what it costs within
    /// our share.
    fn is_allowed(&self, action: &Action) -> bool {
        let Some(shared) = &self.shard.shared else { return true };
        let Some(known) = self.tracked(&action.machine) else { return false };
        let received = || shared.in_force().ownership.is_received(&action.machine);
        match &action.kind {
            // It goes home as it is.
            ActionKind::Delete if received() => {
                shared.unwanted(&action.machine);
                false
            }
            ActionKind::Provision(_) => {
                self.may_begin(action) && shared.may_buy(&known.machine.class)
            }
            _ => self.may_begin(action),
        }
    }

    /// Queues second halves that found no place when their machine turned Idle.
    pub(super) fn queue_waiting_second_halves(&mut self) {
        let waiting = self.live.entries.iter().filter_map(|(machine, entry)| {
            let pending = entry.pending.as_ref().filter(|one| one.stage == Stage::Unqueued)?;
            Some((machine.clone(), pending.decision, pending.action.kind.cluster().cloned()))
        });
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable();
        for (machine, decision, cluster) in waiting {
            let step = Step::Act(cluster);
            self.queue_again(Job { machine, kind: Kind::Bootstrap, decision, step });
        }
    }
}
