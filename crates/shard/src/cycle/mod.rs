//! One cycle: take in what changed, decide, hand out what was decided (§4). It
//! waits for nothing without a bound and sends nothing over a network.

mod holds;
mod probe;
mod rails;
mod restamp;
mod run;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant as Stopwatch},
};

use bigfleet_engine::{Action, Phase};
use bigfleet_model::{ClusterId, Need};
use tokio::{sync::RwLockWriteGuard, time::timeout};

pub(crate) use run::run;

use self::rails::Rails;
use crate::{
    hints::Hints,
    live::Desk,
    metrics::Phase as CyclePhase,
    need_status::{Statuses, Told},
    outcome::Kind,
    publish::Publisher,
    shard::{Decider, Shard},
    views::NeedViews,
};

/// How long a cycle waits for a List that is under way.
const FOR_A_LIST: Duration = Duration::from_millis(500);

/// What the cycle keeps to itself.
pub(crate) struct Cycle {
    number: u64,
    rails: Rails,
    needs: NeedViews,
    hints: Hints,
    statuses: Statuses,
    publisher: Publisher,
    /// Of the last cycle that decided.
    #[cfg(feature = "bench")]
    pub(crate) laps: Vec<(CyclePhase, Duration)>,
}

/// What a cycle took in, for those who must look again.
#[derive(Default)]
struct News {
    /// Clusters whose session began or ended.
    sessions: Vec<ClusterId>,
    /// Clusters with a new demand.
    rolled_up: Vec<ClusterId>,
}

/// Where the time of a cycle went.
pub(crate) struct Laps {
    last: Stopwatch,
    pub(crate) taken: Vec<(CyclePhase, Duration)>,
}

impl Laps {
    fn start() -> Self {
        Self { last: Stopwatch::now(), taken: Vec::with_capacity(CyclePhase::ALL.len()) }
    }

    fn end(&mut self, phase: CyclePhase) {
        let now = Stopwatch::now();
        self.taken.push((phase, now - self.last));
        self.last = now;
    }
}

/// What a cycle came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Which one.
    pub(crate) cycle: u64,
    /// Actions handed to the workers, by kind.
    pub(crate) emitted: BTreeMap<Kind, u32>,
}

impl Cycle {
    pub(crate) fn new(hints: Hints) -> Self {
        Self {
            number: 0,
            rails: Rails::default(),
            needs: NeedViews::default(),
            hints,
            statuses: Statuses::default(),
            publisher: Publisher::default(),
            #[cfg(feature = "bench")]
            laps: Vec::new(),
        }
    }

    /// Decides once; how many actions were handed to the workers.
    pub(crate) async fn run(&mut self, shard: &Arc<Shard>) -> usize {
        self.number += 1;
        shard.actuation.refresh();
        // Late Lists are merged when they arrive. Waiting is not counted: the figures
        // say what a cycle costs, and the wait has its own bound.
        if shard.live().is_reconciled() {
            drop(timeout(FOR_A_LIST, shard.reconciler.idle()).await);
        }
        let mut laps = Laps::start();
        shard.merge_ready().await;
        laps.end(CyclePhase::Reconcile);
        if !shard.live().is_reconciled() {
            shard.publish_waiting();
            return 0;
        }
        let mut decider = shard.decider.write().await;
        let news = self.take_in(shard, &mut decider);
        laps.end(CyclePhase::Snapread);
        decide(shard, &mut decider, &mut laps);
        let mut actions = decider.engine.actions();
        let mut desk = shard.desk_with(RwLockWriteGuard::downgrade(decider));
        desk.restamp_moving();
        actions.extend(desk.drains_to_begin());
        let emitted = self.hand_out(&mut desk, actions);
        desk.take_leave();
        laps.end(CyclePhase::Execute);
        let decider = desk.into_decider();
        self.tell(shard, &decider, &news);
        laps.end(CyclePhase::Emit);
        let enqueued: u32 = emitted.values().sum();
        let summary = Summary { cycle: self.number, emitted };
        self.publisher.publish(shard, &decider, &self.needs.counts, &summary, &laps);
        if shard.options.phase_attribution_log {
            probe::log_phases(&decider.engine, self.number);
        }
        #[cfg(feature = "bench")]
        {
            self.laps = laps.taken;
        }
        enqueued as usize
    }

    /// What others are told of a cycle: readers, then operators.
    fn tell(&mut self, shard: &Shard, decider: &Decider, news: &News) {
        let changes = self.needs.refresh(shard, decider, self.number, &news.rolled_up);
        let rows = shard.needs_read.load();
        self.hints.tell(shard, &decider.engine, &changes, &news.sessions);
        let mut sessions = shard.take_resynced_sessions();
        sessions.extend(news.sessions.iter().cloned());
        let told = Told { rows: &rows, changes: &changes, sessions: &sessions };
        self.statuses.tell(shard, decider, &told);
    }

    /// Gives the engine everything that changed since the last cycle.
    fn take_in(&self, shard: &Shard, decider: &mut Decider) -> News {
        shard.absorb(&mut decider.engine);
        let mut news = News { sessions: shard.take_changed_sessions(), ..News::default() };
        let mut changed = news.sessions.clone();
        changed.extend(shard.refusals().changed());
        if let Some(shared) = &shard.shared {
            shard.take_in_holdings(shared, &mut decider.engine, &mut news.rolled_up);
        }
        let staged = shard.needs.take_staged();
        for (cluster, needs) in &staged {
            decider.engine.replace(cluster, needs);
            changed.push(cluster.clone());
            news.rolled_up.push(cluster.clone());
        }
        drop_elsewhere(staged);
        changed.sort_unstable();
        changed.dedup();
        for cluster in changed {
            shard.renew_holds(&mut decider.engine, &cluster);
        }
        news
    }
}

/// Roll-ups by the thousand take long to drop, and nobody needs to wait for it.
fn drop_elsewhere(staged: Vec<(ClusterId, Vec<Need>)>) {
    const FEW: usize = 1_000;
    if staged.iter().map(|(_, needs)| needs.len()).sum::<usize>() > FEW {
        drop(tokio::task::spawn_blocking(move || drop(staged)));
    }
}

fn decide(shard: &Shard, decider: &mut Decider, laps: &mut Laps) {
    let now = shard.clock.now();
    decider.engine.cycle_observed(now, &mut |phase| match phase {
        // Putting changes in their place is Phase 1's first half.
        Phase::Prepared => {}
        Phase::Phase1 => laps.end(CyclePhase::Phase1),
        Phase::Phase2 => laps.end(CyclePhase::Phase2),
        Phase::Phase3 => laps.end(CyclePhase::Phase3),
    });
    decider.engine.restamp();
    decider.ledger.update(&decider.engine);
}

impl Cycle {
    /// Hands to the workers what the rails let pass, and counts it.
    fn hand_out(&mut self, desk: &mut Desk<'_>, actions: Vec<Action>) -> BTreeMap<Kind, u32> {
        desk.queue_waiting_second_halves();
        let actions = self.rails.pass(desk, actions, self.number);
        let mut emitted: BTreeMap<Kind, u32> = BTreeMap::new();
        for action in actions {
            let kind = Kind::from(&action.kind);
            if desk.enqueue(action, self.number) {
                *emitted.entry(kind).or_default() += 1;
            }
        }
        emitted
    }
}
