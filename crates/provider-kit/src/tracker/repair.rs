//! What becomes of a failed machine: nothing else cleans it (provider chapter §3).

use std::{sync::Arc, time::Duration};

use bigfleet_model::{MachineId, MachineState};
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{Event, Kind, News, Step, step},
};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{
    Late, Tracker,
    drive::{Drive, Failure},
};
use crate::{
    book::{Books, Draft},
    clock::FAR,
    cloud::{Cloud, Op},
    record::Record,
};

/// A shortage passes; other failures want to be looked at first.
const SHORTAGE_HOLD: Duration = Duration::from_secs(60);
const FIRST_AGAIN: Duration = Duration::from_secs(60);
const LAST_AGAIN: Duration = Duration::from_secs(60 * 60);

impl<C: Cloud> Tracker<C> {
    /// Waits for what may still come, holds the evidence, then cleans up.
    pub(super) async fn repair(&self, id: &MachineId, late: Option<Late>) {
        let Some(record) = self.failed(id) else { return };
        let due = self.due(&record);
        if let Some(late) = late {
            self.outwait(id, late, due).await;
        }
        let Some(due) = due.filter(|_| !active(Mutant::RepairOff)) else { return };
        sleep_until(due).await;
        let mut again = FIRST_AGAIN;
        while let Some(record) = self.failed(id) {
            match self.clean(&record).await {
                Ok(()) => {
                    self.metrics.repaired("done");
                    self.repaired(id).await;
                    return;
                }
                Err(failure) => {
                    self.metrics.repaired("failed");
                    tracing::warn!(machine = %id, %failure, "repair failed, to be tried again");
                    sleep(again).await;
                    again = (again * 2).min(LAST_AGAIN);
                }
            }
        }
    }

    fn failed(&self, id: &MachineId) -> Option<Arc<Record>> {
        self.book.get(id).filter(|record| record.machine.state == MachineState::Failed)
    }

    /// When the hold is over; never, if it is zero.
    fn due(&self, record: &Record) -> Option<Instant> {
        let hold = self.config.failed_hold;
        let short = if record.shortage { hold.min(SHORTAGE_HOLD) } else { hold };
        (!hold.is_zero()).then(|| self.clock.at(record.since, short))
    }

    /// A call that ignores its cancellation may still bring a host. Past the hold it
    /// is given up: at most one call at a time works on a machine.
    async fn outwait(&self, id: &MachineId, late: Late, due: Option<Instant>) {
        let Late { mut call, kind, op } = late;
        let until = due.unwrap_or_else(|| Instant::now() + FAR);
        match timeout_at(until, call.ended()).await {
            Ok(Ok(ended)) => {
                let Some(host) = ended.host.filter(|_| kind == Kind::Create) else {
                    if active(Mutant::LateSuccessApplied) {
                        self.settle(id, kind, &op.id, Ok(Default::default())).await;
                    }
                    return;
                };
                tracing::warn!(machine = %id, operation = %op.id, "a late create brought a host");
                let decide = |books: &Books| {
                    let Some(record) = books.machines.get(id) else {
                        return ((), Draft::default());
                    };
                    let current = books.operations.is_current(id, kind, &op.id);
                    let late = step(record.machine.state, Event::Done { kind, current });
                    if late != Ok(Step::KeepHost) || active(Mutant::LateHostLeaked) {
                        return ((), Draft::default());
                    }
                    let mut next = Record::clone(record);
                    next.machine.host = Some(self.host_ref(&host));
                    ((), Draft::put(next))
                };
                self.write(id, decide).await;
            }
            Ok(Err(_)) => {}
            Err(_) => call.abort().await,
        }
    }

    /// Elastic capacity is destroyed, fixed capacity recycled.
    async fn clean(&self, record: &Arc<Record>) -> Result<(), Failure> {
        let deadline = Instant::now() + self.config.timeouts.delete;
        let op = Op {
            id: self.ids.mint(),
            deadline,
            cancelled: self.stopping.child_token(),
            attempt: 1,
        };
        let cancelled = op.cancelled.clone();
        let grace = Duration::ZERO;
        let drive = Drive { op, kind: Kind::Delete, record: record.clone(), grace };
        let mut call = self.call(drive, Vec::new());
        let ended = timeout_at(deadline, call.ended()).await;
        match ended {
            Ok(ended) => ended.map(drop),
            Err(_) => {
                cancelled.cancel();
                let problem = call.last_problem();
                call.abort().await;
                Err(Failure::TimedOut(problem))
            }
        }
    }

    async fn repaired(&self, id: &MachineId) {
        let decide = |books: &Books| {
            let Some(record) = books.machines.get(id) else { return ((), Draft::default()) };
            // A fixed machine that never had a host is a slot again.
            let elastic = record.is_elastic(self.caps) || record.machine.host.is_none();
            let event = Event::Repaired { elastic };
            let Ok(Step::Move(effects)) = step(record.machine.state, event) else {
                return ((), Draft::default());
            };
            let mut next = Record::clone(record);
            effects.apply(&mut next.machine, News::default());
            next.since = self.clock.now();
            next.notice = 0.0;
            next.shortage = false;
            let operation = effects.forget_operations.then_some(None);
            ((), Draft { operation, ..Draft::put(next) })
        };
        self.write(id, decide).await;
        tracing::info!(machine = %id, "repaired");
    }
}
