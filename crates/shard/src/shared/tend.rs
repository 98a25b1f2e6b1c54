//! What time brings about: keys that fall quiet, machines that are done with, drains
//! that are over.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bigfleet_model::{MachineId, MachineState};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Shared, lock};
use crate::{
    holdings::{Event, Holdings, Received, TransferId, TransferMachine, done, drained, quiet},
    live::Desk,
    metrics::Holding,
    shard::Shard,
};

const EVERY: Duration = Duration::from_secs(1);

/// Until a write fails, which ends the process.
pub(crate) async fn tend(shard: Arc<Shard>) {
    let Some(shared) = &shard.shared else { return };
    let mut ticker = interval(EVERY);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.broken() => return,
            _ = ticker.tick() => shard.tend_once(shared).await,
        }
    }
}

impl Shard {
    async fn tend_once(&self, shared: &Shared) {
        shared.follow_silence();
        let holdings = shared.holdings.load_full();
        shared.follow_time(&holdings);
        if !holdings.releasing.is_empty() {
            self.release_quiet(shared).await;
        }
        self.settle_received(shared).await;
        for event in self.drained(shared, &holdings).await {
            // Between looking and taking it in the coordinator may have had its say.
            if let Err(refused) = self.take(shared, &event).await {
                tracing::debug!(%refused, "what was due is not any more");
            }
        }
        self.publish_holdings(shared);
    }

    /// Lets go of lost keys on which nothing is under way. Looked at and taken in within
    /// one turn: a key that came back and went again in between may be at work anew.
    async fn release_quiet(&self, shared: &Shared) {
        self.let_go_of_moving().await;
        let _turn = shared.writer.lock().await;
        let holdings = shared.holdings.load_full();
        let label = holdings.releasing.domains.first().map(|domain| domain.key.as_str());
        let busy = self.busy(label).await;
        let quiet = quiet(&holdings.releasing, busy, shared.announced());
        if !quiet.is_empty() {
            // Never refused.
            drop(self.take_in_turn(shared, &Event::Quiet(quiet)).await);
        }
    }

    /// Gives back received machines that are bound, gone, unused or unwanted.
    async fn settle_received(&self, shared: &Shared) {
        let _turn = shared.writer.lock().await;
        let holdings = shared.holdings.load_full();
        let event = {
            let desk = self.desk().await;
            let done = desk.done_with(shared, &holdings);
            let event = Event::Done(done);
            if matches!(&event, Event::Done(done) if done.is_empty())
                || shared.foresee(&event).is_err()
            {
                return;
            }
            event
        };
        // Refused above, if at all.
        drop(self.take_in_turn(shared, &event).await);
    }

    /// Drains for transfers that all machines have come through, or that took too long.
    async fn drained(&self, shared: &Shared, holdings: &Holdings) -> Vec<Event> {
        let mut events = Vec::new();
        let desk = self.desk().await;
        for (transfer, out) in holdings.out.iter().filter(|(_, out)| !out.is_released()) {
            let since =
                lock(&shared.since).out.get(transfer).map_or(Duration::ZERO, Instant::elapsed);
            let neighbours = shared.neighbours();
            let is_idle = |machine: &&MachineId| {
                desk.tracked(machine).is_none()
                    && neighbours.state(machine) == Some(MachineState::Idle)
            };
            let idle: BTreeSet<MachineId> = out.machines.iter().filter(is_idle).cloned().collect();
            drop(neighbours);
            if drained(out, &idle, since, shared.announced()) {
                events.push(Event::Drained { transfer: transfer.clone(), idle });
            }
        }
        events
    }
}

impl Desk<'_> {
    fn done_with(&self, shared: &Shared, holdings: &Holdings) -> BTreeSet<(TransferId, MachineId)> {
        let Some(assignment) = holdings.assignment.as_ref() else { return BTreeSet::new() };
        if assignment.machines_in.is_empty() || !shared.is_listed() {
            return BTreeSet::new();
        }
        let since = lock(&shared.since);
        let unwanted = lock(&shared.unwanted);
        let is_done = |one: &&TransferMachine| {
            let id = &one.machine;
            let key = (one.transfer.clone(), id.clone());
            let pending = self.live.pending(id).is_some() || self.live.holds.contains_key(id);
            let unsaid = pending || self.live.unsaid.contains(id);
            let known = self.tracked(id).map(|tracked| tracked.machine.state);
            done(&Received {
                // What we are about to do is not the provider's word, nor what we did
                // while nobody says what came of it.
                state: if unsaid { Some(MachineState::Creating) } else { known },
                since: since.received.get(&key).map_or(Duration::ZERO, Instant::elapsed),
                quiet: !pending && shared.announced(),
                unwanted: unwanted.contains(id) || assignment.held.domains.contains(&one.home),
            })
        };
        let done = assignment.machines_in.iter().filter(is_done);
        done.map(|one| (one.transfer.clone(), one.machine.clone())).collect()
    }
}

impl Shard {
    fn publish_holdings(&self, shared: &Shared) {
        let holdings = shared.holdings.load();
        let since = lock(&shared.since);
        let now = Instant::now();
        let age = |at: Option<Instant>| at.map_or(Duration::ZERO, |at| now - at);
        let received = holdings.assignment.as_ref().map_or(0, |one| one.machines_in.len());
        let oldest_out = since.out.values().min().copied();
        let oldest_received = since.received.values().min().copied();
        let metrics = &self.metrics;
        metrics.holding(Holding::Releasing, holdings.releasing.len(), age(since.releasing));
        metrics.holding(Holding::Out, holdings.out.len(), age(oldest_out));
        metrics.holding(Holding::Received, received, age(oldest_received));
        metrics.holding(Holding::Settled, holdings.settled.len(), age(since.settled));
        let nobodys = i64::try_from(shared.neighbours().nobodys()).unwrap_or(i64::MAX);
        metrics.machines_without_owner.set(nobodys);
    }
}

impl Shared {
    /// Whether a List has been read since the last change.
    fn is_listed(&self) -> bool {
        lock(&self.listed).is_some_and(|listed| listed >= self.revision())
    }

    /// Keeps account of since when things are as they are.
    fn follow_time(&self, holdings: &Holdings) {
        let now = Instant::now();
        let mut since = lock(&self.since);
        since.releasing = since.releasing.or(Some(now)).filter(|_| !holdings.releasing.is_empty());
        since.settled = since.settled.or(Some(now)).filter(|_| !holdings.settled.is_empty());
        since.out.retain(|transfer, _| holdings.out.contains_key(transfer));
        for transfer in holdings.out.keys() {
            since.out.entry_ref(transfer).or_insert(now);
        }
        let received = holdings.assignment.iter().flat_map(|one| &one.machines_in);
        let received: BTreeSet<(TransferId, MachineId)> =
            received.map(|one| (one.transfer.clone(), one.machine.clone())).collect();
        since.received.retain(|one, _| received.contains(one));
        for one in &received {
            since.received.entry(one.clone()).or_insert(now);
        }
        let mut unwanted = lock(&self.unwanted);
        if !unwanted.is_empty() {
            let received: BTreeSet<&MachineId> = received.iter().map(|(_, id)| id).collect();
            unwanted.retain(|id| received.contains(id));
        }
    }
}
