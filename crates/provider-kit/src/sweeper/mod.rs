//! Compares what is held with what the cloud describes (provider chapter §3, §7).

mod offers;
mod seed;

use std::{collections::HashMap, sync::Arc, time::Duration};

use bigfleet_model::{MachineId, MachineState};
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{Event, News, Step, step},
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, timeout},
};

use self::offers::Offers;
pub(crate) use self::seed::seed;
use crate::{
    book::{Books, Draft, Patience},
    cloud::Cloud,
    handle::{CloudEvent, Notice},
    record::{Classes, Record},
    shape::ShapeCheck,
    tracker::Tracker,
};

/// Two sweeps that miss a host must lie so far apart, or one interval if that is less.
const LOSS_SPACING: Duration = Duration::from_secs(60);
/// From so many hosts on, losing more than half of them at once is not believed.
const MASS: usize = 10;

/// One sweeper, one sweep at a time.
pub(crate) struct Sweeper<C> {
    pub(crate) tracker: Arc<Tracker<C>>,
    shape: ShapeCheck,
    classes: Classes,
    /// Hosts that the last sweeps missed: since when, and of which state of the machine.
    missing: HashMap<MachineId, Missing>,
}

#[derive(Clone, Copy)]
struct Missing {
    first: Instant,
    since: Duration,
}

impl<C: Cloud> Sweeper<C> {
    pub(crate) fn new(tracker: Arc<Tracker<C>>) -> Self {
        let shape = ShapeCheck::new(&*tracker.config.provider);
        let mut classes = Classes::default();
        tracker.book.for_each(|record| classes.learn(&record.machine.class));
        Self { tracker, shape, classes, missing: HashMap::new() }
    }

    /// Sweeps at its turn and when asked to, until the stop.
    pub(crate) async fn run(mut self, asked: Arc<Notify>) {
        let stopping = self.tracker.stopping.clone();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = sleep(self.tracker.config.sweep_interval) => {}
                () = asked.notified() => {}
            }
            tokio::select! {
                () = stopping.cancelled() => return,
                () = self.sweep() => {}
            }
        }
    }

    /// One sweep, begun now.
    pub(crate) async fn sweep(&mut self) {
        let tracker = self.tracker.clone();
        let (begun, wall) = (Instant::now(), tracker.clock.now());
        let outcome = match self.describe().await {
            Err(outcome) => outcome,
            Ok(offers) => self.compare(&offers, begun, wall).await,
        };
        if active(Mutant::RevisionOnSweep) {
            tracker.book.bump_any();
        }
        tracker.metrics.swept(outcome);
    }

    async fn describe(&self) -> Result<Offers, &'static str> {
        let tracker = &self.tracker;
        let begun = Instant::now();
        let cloud = tracker.cloud.clone();
        let call = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
            cloud.describe().await
        }));
        let (label, result) = match timeout(tracker.config.describe_timeout, call).await {
            Ok(Ok(Ok(offers))) => ("ok", Ok(offers)),
            Ok(Ok(Err(error))) => (error.label(), Err(("failed", error.to_string()))),
            Ok(Err(error)) => {
                tracker.metrics.panics.inc();
                ("panic", Err(("failed", error.to_string())))
            }
            Err(_) => ("timeout", Err(("timeout", "the cloud did not answer in time".to_owned()))),
        };
        tracker.metrics.cloud_call("describe", label, begun.elapsed());
        let offers = result.map_err(|(outcome, problem)| {
            tracing::warn!(problem, "sweep failed: nothing is changed");
            outcome
        })?;
        Ok(Offers::check(offers, &self.shape, |misshapen| {
            tracker.metrics.misshapen(misshapen.field);
            tracing::warn!(%misshapen, "offer skipped");
        }))
    }

    async fn compare(&mut self, offers: &Offers, begun: Instant, wall: Duration) -> &'static str {
        let records = self.tracker.book.all();
        let settled = |record: &&Arc<Record>| {
            let state = record.machine.state;
            matches!(state, MachineState::Idle | MachineState::Configured)
                && record.machine.host.is_some()
        };
        let held: Vec<_> = records.iter().filter(settled).collect();
        let gone: Vec<_> = held.iter().filter(|record| self.is_missing(offers, record)).collect();
        if held.len() >= MASS && gone.len() * 2 > held.len() {
            let (held, gone) = (held.len(), gone.len());
            tracing::error!(held, gone, "over half of all hosts vanished at once: not believed");
            return "mass_loss";
        }
        let spacing = LOSS_SPACING.min(self.tracker.config.sweep_interval);
        let mut missing = HashMap::new();
        for record in gone.into_iter().filter(|record| record.since <= wall) {
            let id = &record.machine.id;
            let known = self.missing.get(id).filter(|known| known.since == record.since);
            let entry = known.copied().unwrap_or(Missing { first: begun, since: record.since });
            if begun.duration_since(entry.first) >= spacing && known.is_some() {
                self.lost(record).await;
            } else {
                missing.insert(id.clone(), entry);
            }
        }
        self.missing = missing;
        for record in &records {
            self.retire(offers, record, wall).await;
        }
        for machine in offers.machines() {
            self.take(machine, wall).await;
        }
        self.classes.prune();
        "ok"
    }

    /// A slot that configuration dropped is not a loss where its host is not ours to
    /// buy again.
    fn is_missing(&self, offers: &Offers, record: &Record) -> bool {
        let host = record.machine.host.as_ref().map(|host| host.reference.as_str());
        match offers.host(&record.machine.id) {
            Some(described) => described != host,
            None => record.is_elastic(self.tracker.caps),
        }
    }

    async fn lost(&self, seen: &Record) {
        if active(Mutant::LossIgnored) {
            return;
        }
        let (tracker, id) = (&self.tracker, &seen.machine.id);
        let decide = |books: &Books| {
            let Some(record) = books.machines.get(id) else { return (false, Draft::default()) };
            let event = Event::Lost { elastic: record.is_elastic(tracker.caps) };
            let Ok(Step::Move(effects)) = step(record.machine.state, event) else {
                return (false, Draft::default());
            };
            // Moved since it was seen: that task finds out by itself.
            if record.since != seen.since {
                return (false, Draft::default());
            }
            let mut next = Record::clone(record);
            effects.apply(&mut next.machine, News { error: "host lost".into(), ..News::default() });
            next.since = tracker.clock.now();
            next.notice = 0.0;
            (true, Draft::put(next))
        };
        // A store that fails now is a sweep that comes too early.
        let Ok((true, record)) = tracker.book.change(id, Patience::Kit, decide).await else {
            return;
        };
        tracker.metrics.hosts_lost.inc();
        tracing::warn!(machine = %id, "host lost");
        if record.is_some_and(|record| record.machine.state == MachineState::Failed) {
            tracker.tend(id.clone());
        }
    }

    /// Drops the record of a slot that is configured no more.
    async fn retire(&self, offers: &Offers, seen: &Record, wall: Duration) {
        let (tracker, id) = (&self.tracker, &seen.machine.id);
        if offers.host(id).is_some() || seen.since > wall || active(Mutant::SlotLeaked) {
            return;
        }
        let decide = |books: &Books| {
            let retired = books.machines.get(id).is_some_and(|record| {
                let idle = record.machine.state == MachineState::Idle;
                let slot = record.machine.state == MachineState::Speculative;
                record.since == seen.since && (slot || idle && !record.is_elastic(tracker.caps))
            });
            (retired, if retired { Draft::drop_record() } else { Draft::default() })
        };
        if let Ok((true, _)) = tracker.book.change(id, Patience::Kit, decide).await {
            tracing::info!(machine = %id, "slot is configured no more");
        }
    }

    /// The store wins on state and binding, the cloud on facts.
    async fn take(&mut self, described: &bigfleet_model::Machine, wall: Duration) {
        let (tracker, id) = (&self.tracker, &described.id);
        let stray = |record: &Record| {
            record.machine.state == MachineState::Speculative
                && described.host.is_some()
                && record.since <= wall
        };
        let known = tracker.book.get(id);
        if known.is_none() && active(Mutant::SlotLost) {
            return;
        }
        if known
            .as_ref()
            .is_some_and(|record| record.machine.class == described.class && !stray(record))
        {
            return;
        }
        let mut machine = described.clone();
        self.classes.share(&mut machine);
        let (tracker, shape) = (&self.tracker, &machine.class);
        let decide = |books: &Books| {
            let Some(record) = books.machines.get(id) else {
                let record = Record::new(machine.clone(), tracker.clock.now());
                return (Taken::Facts, Draft::put(record));
            };
            let mut next = Record::clone(record);
            let old = &record.machine.class;
            if (&old.instance_type, &old.zone, old.capacity_type)
                != (&shape.instance_type, &shape.zone, shape.capacity_type)
            {
                return (Taken::Refused, Draft::default());
            }
            next.machine.class = shape.clone();
            if !stray(record) {
                return (Taken::Facts, Draft::put(next));
            }
            let Ok(Step::Move(effects)) = step(record.machine.state, Event::Broke) else {
                return (Taken::Facts, Draft::default());
            };
            let error = "a host exists although none was created".into();
            effects.apply(&mut next.machine, News { error, ..News::default() });
            next.machine.host.clone_from(&machine.host);
            next.since = tracker.clock.now();
            (Taken::Stray, Draft::put(next))
        };
        match tracker.book.change(id, Patience::Kit, decide).await {
            Ok((Taken::Refused, _)) => {
                tracker.metrics.misshapen("constant");
                tracing::warn!(machine = %id, "offer skipped: type, zone and capacity type never change");
            }
            Ok((Taken::Stray, _)) => {
                tracing::error!(machine = %id, "a host without a record: to be destroyed");
                tracker.tend(id.clone());
            }
            _ => {}
        }
    }
}

enum Taken {
    Facts,
    Refused,
    Stray,
}

/// Takes what the cloud tells by itself, until the stop.
pub(crate) async fn listen<C: Cloud>(
    tracker: Arc<Tracker<C>>,
    mut events: mpsc::UnboundedReceiver<CloudEvent>,
    sweep: Arc<Notify>,
) {
    loop {
        let event = tokio::select! {
            () = tracker.stopping.cancelled() => return,
            event = events.recv() => event,
        };
        match event {
            None => return,
            Some(CloudEvent::Sweep) => sweep.notify_one(),
            Some(CloudEvent::Notice(id, notice)) => raise(&tracker, &id, notice).await,
        }
    }
}

async fn raise<C: Cloud>(tracker: &Tracker<C>, id: &MachineId, notice: Notice) {
    if active(Mutant::NoticeIgnored) {
        return;
    }
    let decide = |books: &Books| {
        let known = books.machines.get(id).filter(|record| {
            let shown = record.machine.class.interruption_probability.max(record.notice);
            record.machine.host.is_some() && notice.probability() > shown
        });
        let Some(record) = known else { return ((), Draft::default()) };
        ((), Draft::put(Record { notice: notice.probability(), ..Record::clone(record) }))
    };
    tracing::info!(machine = %id, ?notice, "interruption notice");
    tracker.write(id, decide).await;
}
