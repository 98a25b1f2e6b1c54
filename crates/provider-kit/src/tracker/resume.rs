//! What a restart finds half-done (provider chapter §7).

use std::{sync::Arc, time::Duration};

use bigfleet_model::MachineState;
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{Event, Kind, News, Step, step},
};
use tokio::time::Instant;

use super::Tracker;
use crate::{
    book::{Books, Draft, Start, Work},
    cloud::Cloud,
    inflight::InflightCap,
    record::Record,
};

/// Even an operation whose time is over gets this much.
const LEAST_LEFT: Duration = Duration::from_secs(30);

impl<C: Cloud> Tracker<C> {
    /// Gives every transitional record a task or an end, and every failed one its
    /// repair. To be called once, before calls are served.
    pub(crate) async fn resume(self: &Arc<Self>, inflight: &InflightCap) {
        for record in self.book.all() {
            match Kind::running(record.machine.state) {
                Some(_) if active(Mutant::TransitionalLeft) => {}
                Some(kind) => self.resume_one(kind, record, inflight).await,
                None if record.machine.state == MachineState::Failed => {
                    self.tend(record.machine.id.clone());
                }
                None => {}
            }
        }
    }

    async fn resume_one(self: &Arc<Self>, kind: Kind, record: Arc<Record>, inflight: &InflightCap) {
        let id = &record.machine.id;
        let operation = self.book.read().operations.get(id, kind).cloned();
        // The blob is a join secret and is not stored.
        let resumable = self.caps.resumable && kind != Kind::Configure && !active(Mutant::NoResume);
        let Some(operation) = operation.filter(|_| resumable) else {
            self.interrupted(kind, &record).await;
            self.tend(id.clone());
            return;
        };
        let timeout = self.config.timeouts.of(kind, operation.grace);
        let deadline = self.clock.at(operation.started, timeout).max(Instant::now() + LEAST_LEFT);
        tracing::info!(machine = %id, %kind, operation = %operation.id, "resumed after a restart");
        let start = Start { kind, operation, blob: Vec::new(), inflight: inflight.resume() };
        self.begin(Work { record, start, deadline });
    }

    async fn interrupted(&self, kind: Kind, record: &Record) {
        let id = &record.machine.id;
        let decide = |books: &Books| {
            let Some(record) = books.machines.get(id) else { return ((), Draft::default()) };
            let event = Event::Failed { kind, current: true };
            let Ok(Step::Move(effects)) = step(record.machine.state, event) else {
                return ((), Draft::default());
            };
            let mut next = Record::clone(record);
            let error = format!("{kind} interrupted by restart");
            effects.apply(&mut next.machine, News { error, ..News::default() });
            next.since = self.clock.now();
            ((), Draft::put(next))
        };
        self.write(id, decide).await;
    }
}
