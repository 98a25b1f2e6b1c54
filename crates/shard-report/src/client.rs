//! The report loop.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_net::{grpc, leader::Replicas};
use bigfleet_shard::{ReportSide, metrics::ReportOutcome};
use tokio::time::{Instant, sleep_until};

use crate::{
    Error, instruction, leader,
    memory::Memory,
    options::{DEADLINE, Options},
    pace, report, shared,
};

/// A shard's coordinator client. It takes what it reports from the shard when it
/// likes and is never waited for. Clones go on where the others were: run one.
#[derive(Clone)]
pub struct Client {
    side: ReportSide,
    options: Options,
    memory: Arc<Mutex<Memory>>,
}

impl Client {
    /// Checks the addresses and dials nothing yet.
    pub fn new(side: ReportSide, options: Options) -> Result<Self, Error> {
        if options.addresses.is_empty() {
            return Err(Error::NoAddress);
        }
        for address in &options.addresses {
            grpc::check_address(address).map_err(Error::Address)?;
        }
        let instance = pace::draw().max(1);
        let memory = match side.shared() {
            None => Memory::new(instance),
            Some(shared) => Memory::sharing(instance, &shared.holdings()),
        };
        Ok(Self { side, options, memory: Arc::new(Mutex::new(memory)) })
    }

    /// Reports at once, then every interval, for ever.
    pub(crate) async fn run(self) {
        let Options { addresses, security, resolver, .. } = self.options.clone();
        let mut replicas = Replicas::new(addresses, security, resolver);
        loop {
            let started = Instant::now();
            let next = match self.report(&mut replicas).await {
                Some(after) => Instant::now() + pace::asked(after),
                // Nothing is done before it was answered, or asked often enough.
                None if self.waits() => Instant::now() + shared::PAUSE,
                None => started + pace::jittered(self.options.interval, pace::draw()),
            };
            sleep_until(next).await;
        }
    }

    /// One report; when the next is wanted, if the coordinator said so.
    async fn report(&self, replicas: &mut Replicas) -> Option<Duration> {
        let carried = self.memory().begin();
        let report = report::build(&self.side, &self.options, &carried).await;
        let patience = if self.waits() { DEADLINE - shared::PAUSE } else { DEADLINE };
        let deadline = Instant::now() + patience;
        let judge = |answer| {
            let obey = |order| instruction::obey(&self.side, order);
            self.memory().receive(answer, obey)
        };
        match leader::report(replicas, &report, deadline, judge).await {
            Ok(obeyed) => {
                self.side.set_coordinator_term(obeyed.term);
                self.side.reported(ReportOutcome::Ok);
                let mut after = obeyed.next_report_after;
                if let Some(shared) = self.side.shared() {
                    // An Assignment is for reports that name the fleet.
                    let first = carried.fleet_id.is_empty() && obeyed.fleet.is_some();
                    after = after.or_else(|| first.then_some(shared::PAUSE));
                    for ack in shared::carry_out(&shared, obeyed).await {
                        self.memory().answered(ack);
                    }
                }
                after
            }
            Err(missed) => {
                let outcome = missed.outcome.label();
                tracing::warn!(cycle = carried.cycle, outcome, "no coordinator took the report");
                self.side.reported(missed.outcome);
                if let Some(shared) = self.side.shared() {
                    shared::missed(&shared, missed.stale.as_deref()).await;
                }
                None
            }
        }
    }

    /// Whether the shard does nothing before a report was answered.
    fn waits(&self) -> bool {
        self.side.shared().is_some_and(|shared| shared.waits_for_report())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
