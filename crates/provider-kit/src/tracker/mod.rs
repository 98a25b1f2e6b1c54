//! Carries transitions out: one task per machine at most, from acceptance through
//! failure to repair (provider chapter §3).
//!
//! A machine has a task exactly while it is transitional or FAILED. Both refuse every
//! mutation but a replay, so no second task can begin.

mod drive;
mod repair;
mod resume;

use std::{sync::Arc, time::Duration};

use bigfleet_model::{HostRef, MachineId, MachineState, gate::inventory};
use bigfleet_net::duration;
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{Event, Kind, News, OperationId, Step, step},
};
use bigfleet_wire::v1alpha1 as wire;
use tokio::{
    sync::mpsc,
    time::{sleep, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::drive::{CloudCall, Drive, Ended, Failure};
use crate::{
    book::{Book, Books, Draft, Patience, Start, Unwritten, Work},
    clock::Clock,
    cloud::{Caps, Cloud, Host, Op},
    config::Config,
    metrics::Metrics,
    random::OperationIds,
    record::Record,
};

/// What has happened is written again and again until the store takes it.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// Everything that a task needs.
pub(crate) struct Tracker<C> {
    pub(crate) cloud: Arc<C>,
    pub(crate) caps: Caps,
    pub(crate) book: Arc<Book>,
    pub(crate) config: Arc<Config>,
    pub(crate) ids: Arc<OperationIds>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl<C: Cloud> Tracker<C> {
    /// Begins whatever is accepted, until the stop.
    pub(crate) async fn run(self: Arc<Self>, mut works: mpsc::UnboundedReceiver<Work>) {
        loop {
            tokio::select! {
                () = self.stopping.cancelled() => return,
                work = works.recv() => match work {
                    Some(work) => self.begin(work),
                    None => return,
                },
            }
        }
    }

    /// Gives a transition its task.
    pub(crate) fn begin(self: &Arc<Self>, work: Work) {
        let tracker = self.clone();
        self.spawn(async move { tracker.transition(work).await });
    }

    /// Gives a failed machine its task.
    pub(crate) fn tend(self: &Arc<Self>, machine: MachineId) {
        let tracker = self.clone();
        self.spawn(async move { tracker.repair(&machine, None).await });
    }

    /// A stop leaves everything as it is: the next start resumes it.
    fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = task => {}
            }
        });
    }

    async fn transition(&self, work: Work) {
        let Work { record, start, deadline } = work;
        let Start { kind, operation, blob, inflight } = start;
        let id = record.machine.id.clone();
        let op = Op {
            id: operation.id.clone(),
            deadline,
            cancelled: self.stopping.child_token(),
            attempt: 1,
        };
        let drive = Drive { op: op.clone(), kind, record: record.clone(), grace: operation.grace };
        let mut call = self.call(drive, blob);
        let ended = tokio::select! {
            biased;
            ended = call.ended() => ended,
            () = sleep_until(deadline), if !active(Mutant::TimeoutNeverFires) => {
                op.cancelled.cancel();
                Err(Failure::TimedOut(call.last_problem()))
            }
        };
        if ended.is_err() && self.stopping.is_cancelled() {
            // The stop cancelled it, it did not fail: the next start goes on with it.
            return;
        }
        let took = self.clock.now().saturating_sub(operation.started);
        let outcome = match &ended {
            Ok(_) => "done",
            Err(Failure::TimedOut(_)) => "timeout",
            Err(_) => "failed",
        };
        self.metrics.transition(kind, outcome, took);
        let late = matches!(ended, Err(Failure::TimedOut(_))).then_some(Late { call, kind, op });
        let failed = ended.is_err();
        if !failed && kind == Kind::Create && active(Mutant::CreateNeverEnds) {
            return;
        }
        self.settle(&id, kind, &operation.id, ended).await;
        drop(inflight);
        if failed {
            self.repair(&id, late).await;
        } else {
            self.aftermath(&id, kind, &operation.id).await;
        }
    }

    /// Writes down how an operation ended, if it is still the one on record.
    async fn settle(
        &self,
        id: &MachineId,
        kind: Kind,
        operation: &OperationId,
        ended: Result<Ended, Failure>,
    ) {
        let (Ended { host }, failure) = match ended {
            Ok(ended) => (ended, None),
            Err(failure) => (Ended::default(), Some(failure)),
        };
        let decide = |books: &Books| {
            let Some(record) = books.machines.get(id) else { return ((), Draft::default()) };
            let current = books.operations.is_current(id, kind, operation);
            let grace = books.operations.get(id, kind).map(|one| one.grace).unwrap_or_default();
            let event = match &failure {
                None => Event::Done { kind, current },
                Some(_) => Event::Failed { kind, current },
            };
            let Ok(Step::Move(effects)) = step(record.machine.state, event) else {
                tracing::warn!(machine = %id, %kind, %operation, "a late result was discarded");
                return ((), Draft::default());
            };
            let mut next = Record::clone(record);
            let news = News {
                host: host.as_ref().map(|host| self.host_ref(host)),
                error: failure
                    .as_ref()
                    .map(|failure| self.text(kind, grace, failure))
                    .unwrap_or_default(),
                ..News::default()
            };
            effects.apply(&mut next.machine, news);
            if let Some(host) = &host {
                refine(&mut next, host);
            }
            if active(Mutant::DrainReverts) && kind == Kind::Drain && grace.is_zero() {
                next = Record::clone(record);
                next.machine.state = MachineState::Configured;
            }
            if active(Mutant::SlotLost) && kind == Kind::Delete {
                return ((), Draft::drop_record());
            }
            next.since = self.clock.now();
            next.shortage = failure.as_ref().is_some_and(Failure::is_shortage);
            if kind == Kind::Delete && failure.is_none() {
                next.notice = 0.0;
            }
            ((), Draft::put(next))
        };
        if let Some(failure) = &failure {
            tracing::warn!(machine = %id, %kind, %operation, %failure, "transition failed");
        }
        self.write(id, decide).await;
    }

    /// Until the store takes it.
    pub(crate) async fn write<T>(
        &self,
        id: &MachineId,
        decide: impl Fn(&Books) -> (T, Draft),
    ) -> (T, Option<Arc<Record>>) {
        loop {
            match self.book.change(id, Patience::Kit, &decide).await {
                Ok(written) => return written,
                Err(Unwritten::Stopping) => std::future::pending().await,
                Err(_) => sleep(WRITE_AGAIN).await,
            }
        }
    }

    fn host_ref(&self, host: &Host) -> HostRef {
        HostRef { provider: self.config.provider.clone(), reference: host.reference.clone() }
    }

    fn text(&self, kind: Kind, grace: Duration, failure: &Failure) -> String {
        match failure {
            Failure::TimedOut(problem) => {
                let after = duration::format(self.config.timeouts.of(kind, grace));
                let problem = problem.as_deref().unwrap_or("the cloud did not finish");
                format!("{kind} timed out after {after}: {problem}")
            }
            failure => format!("{kind} failed: {failure}"),
        }
    }
}

/// A call that outlived its transition.
struct Late {
    call: CloudCall,
    kind: Kind,
    op: Op,
}

/// What a slot only promised, and its host now knows. What no record may show is
/// left out.
fn refine(record: &mut Record, host: &Host) {
    if host.resources.is_none() && host.allocatable.is_none() {
        return;
    }
    let mut message = wire::Machine::from(&record.machine);
    let map = |resources: &std::collections::BTreeMap<String, String>| {
        Some(wire::Resources { resources: resources.clone() })
    };
    if let Some(resources) = &host.resources {
        message.resources = map(resources);
    }
    if let Some(allocatable) = &host.allocatable {
        message.allocatable = map(allocatable);
    }
    match inventory::machine(message) {
        Ok(accepted) => record.machine.class = accepted.machine.class,
        Err(rejected) => {
            tracing::warn!(machine = %record.machine.id, %rejected, "refined resources are ignored");
        }
    }
}
