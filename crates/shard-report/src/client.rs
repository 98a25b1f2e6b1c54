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
    pace, report,
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
        let memory = Arc::new(Mutex::new(Memory::new(pace::draw().max(1))));
        Ok(Self { side, options, memory })
    }

    /// Reports at once, then every interval, for ever.
    pub(crate) async fn run(self) {
        let Options { addresses, security, resolver, .. } = self.options.clone();
        let mut replicas = Replicas::new(addresses, security, resolver);
        loop {
            let started = Instant::now();
            let next = match self.report(&mut replicas).await {
                Some(after) => Instant::now() + pace::asked(after),
                None => started + pace::jittered(self.options.interval, pace::draw()),
            };
            sleep_until(next).await;
        }
    }

    /// One report; when the next is wanted, if the coordinator said so.
    async fn report(&self, replicas: &mut Replicas) -> Option<Duration> {
        let carried = self.memory().begin();
        let report = report::build(&self.side, &self.options, &carried).await;
        let deadline = Instant::now() + DEADLINE;
        let judge = |answer| {
            let obey = |order| instruction::obey(&self.side, order);
            self.memory().receive(answer, obey)
        };
        match leader::report(replicas, &report, deadline, judge).await {
            Ok(obeyed) => {
                self.side.set_coordinator_term(obeyed.term);
                self.side.reported(ReportOutcome::Ok);
                obeyed.next_report_after
            }
            Err(missed) => {
                let outcome = missed.outcome.label();
                tracing::warn!(cycle = carried.cycle, outcome, "no coordinator took the report");
                self.side.reported(missed.outcome);
                None
            }
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
