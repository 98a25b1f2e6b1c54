//! Where a scenario is played: it says what it does, waits for what must be seen, and settles
//! its claims.

use std::{
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::{
    record::{Explain, Phase, Run},
    view::View,
};
use crate::{cluster::workload::Workload, eyes::Decision, fleet::Fleet};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait for anything that is bound to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Why a scenario stopped before its end.
#[derive(Debug)]
pub(crate) struct Stop(pub(crate) String);

impl<E: Display> From<E> for Stop {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

pub(crate) type Played = Result<(), Stop>;

/// Looks at every view; a word is a violation.
type Guard = Box<dyn FnMut(&View, &Fleet) -> Option<String> + Send>;

/// A stage.
pub(crate) struct Stage<'a> {
    pub(crate) fleet: &'a Fleet,
    /// Whether somebody watches, who wants to see things happen.
    pub(crate) guided: bool,
    run: Arc<Mutex<Run>>,
    guards: Mutex<Vec<(&'static str, Guard)>>,
    marks: Mutex<Vec<i64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, as the guide counts.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

impl<'a> Stage<'a> {
    pub(crate) fn new(fleet: &'a Fleet, guided: bool, run: Arc<Mutex<Run>>) -> Self {
        let marks = Mutex::new(fleet.eyes.marks());
        Self { fleet, guided, run, guards: Mutex::default(), marks }
    }

    /// What happens next.
    pub(crate) fn step(&self, phase: Phase, text: &str) {
        tracing::info!(?phase, text, "step");
        lock(&self.run).step(phase, text, now());
    }

    /// What is seen.
    pub(crate) fn detail(&self, detail: &str) {
        lock(&self.run).detail(detail);
    }

    /// Settles a claim.
    pub(crate) fn claim(&self, text: &'static str, holds: bool, detail: impl Into<String>) {
        lock(&self.run).settle(text, holds, detail.into());
    }

    /// Where the explanation of a need is.
    pub(crate) fn explain(&self, explain: Explain) {
        lock(&self.run).explain = Some(explain);
    }

    /// One look at everything.
    pub(crate) fn view(&self) -> View {
        View::of(self.fleet)
    }

    /// Fails the claim as soon as the guard has something to say of a view.
    pub(crate) fn guard(
        &self,
        claim: &'static str,
        guard: impl FnMut(&View, &Fleet) -> Option<String> + Send + 'static,
    ) {
        lock(&self.guards).push((claim, Box::new(guard)));
    }

    /// Lets the guards of a claim go; what they had to say stays said.
    pub(crate) fn release(&self, claim: &'static str) {
        lock(&self.guards).retain(|(guarded, _)| *guarded != claim);
    }

    /// The same, and the claim holds unless it has failed.
    pub(crate) fn relieve(&self, claim: &'static str, detail: impl Into<String>) {
        self.release(claim);
        self.claim(claim, true, detail);
    }

    /// From here on decisions count.
    pub(crate) fn mark(&self) {
        *lock(&self.marks) = self.fleet.eyes.marks();
    }

    /// Decisions since the mark, oldest first.
    pub(crate) fn decisions(&self) -> Vec<Decision> {
        let marks = lock(&self.marks).clone();
        let all = self.fleet.eyes.decisions().into_iter();
        all.filter(|it| it.record.sequence > marks[it.shard]).collect()
    }

    /// Looks until it is so; says what it sees meanwhile.
    pub(crate) async fn until<T>(
        &self,
        mut look: impl FnMut(&View) -> Result<T, String>,
    ) -> Result<T, Stop> {
        self.until_within(PATIENCE, &mut look).await
    }

    /// The same with another patience.
    pub(crate) async fn until_within<T>(
        &self,
        patience: Duration,
        look: &mut impl FnMut(&View) -> Result<T, String>,
    ) -> Result<T, Stop> {
        let deadline = Instant::now() + patience;
        loop {
            let view = self.look().await?;
            match look(&view) {
                Ok(seen) => return Ok(seen),
                Err(missing) if Instant::now() > deadline => {
                    return Err(Stop(format!("not within {} s: {missing}", patience.as_secs())));
                }
                Err(missing) => self.detail(&missing),
            }
            sleep(LOOK).await;
        }
    }

    /// Lets time pass, with the guards awake.
    pub(crate) async fn pass(&self, time: Duration) -> Played {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.look().await?;
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// One look at everything that should run, with the guards awake.
    pub(crate) async fn look(&self) -> Result<View, Stop> {
        self.fleet.check().await?;
        let view = self.view();
        self.watch(&view);
        Ok(view)
    }

    fn watch(&self, view: &View) {
        for (claim, guard) in lock(&self.guards).iter_mut() {
            if let Some(violation) = guard(view, self.fleet) {
                lock(&self.run).settle(claim, false, violation);
            }
        }
    }

    /// Sets a level.
    pub(crate) fn demand(&self, cluster: usize, workload: Workload, count: u32) {
        self.fleet.demand(cluster, workload, count);
    }
}
