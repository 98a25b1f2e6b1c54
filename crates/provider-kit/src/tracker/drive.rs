//! One transition's calls of the cloud, in a task of their own: a panic ends that
//! task alone, and a call that ignores its cancellation can be outwaited.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_model::Machine;
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::Kind,
};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::Tracker;
use crate::{
    cloud::{Cloud, CloudError, Host, Op, Ready},
    metrics::Metrics,
    random::jittered,
    record::Record,
};

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);
const FIRST_POLL: Duration = Duration::from_millis(100);
const LAST_POLL: Duration = Duration::from_secs(5);

/// What is to be done.
pub(super) struct Drive {
    pub(super) op: Op,
    pub(super) kind: Kind,
    pub(super) record: Arc<Record>,
    pub(super) grace: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Of a Create.
    pub(super) host: Option<Host>,
}

/// Why it failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Cloud(CloudError),
    #[error("the cloud returned a host without a reference")]
    NamelessHost,
    #[error("readiness cannot be observed; start with --allow-ungated-configure to accept that")]
    Unobservable,
    #[error("the provider's own code panicked; see its log")]
    Panicked,
    #[error("timed out")]
    TimedOut(Option<String>),
}

impl Failure {
    pub(super) const fn is_shortage(&self) -> bool {
        matches!(self, Self::Cloud(error) if error.is_shortage())
    }
}

/// A drive under way.
pub(super) struct CloudCall {
    task: AbortOnDropHandle<Result<Ended, Failure>>,
    problem: Arc<Mutex<Option<String>>>,
    metrics: Metrics,
}

impl CloudCall {
    /// Its end; to be awaited to the end once.
    pub(super) async fn ended(&mut self) -> Result<Ended, Failure> {
        match (&mut self.task).await {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => {
                self.metrics.panics.inc();
                Err(Failure::Panicked)
            }
            Err(_) => Err(Failure::TimedOut(None)),
        }
    }

    /// Stops it, whatever it does, and returns when it has stopped.
    pub(super) async fn abort(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// What the last attempt said.
    pub(super) fn last_problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<C: Cloud> Tracker<C> {
    pub(super) fn call(&self, drive: Drive, blob: Vec<u8>) -> CloudCall {
        let problem = Arc::new(Mutex::new(None));
        let (metrics, noted) = (self.metrics.clone(), problem.clone());
        let attempts = Attempts { cloud: self.cloud.clone(), metrics, problem: noted };
        let ungated = self.config.allow_ungated_configure;
        // Tracked: a stop ends when the last call has ended, too.
        let task = self.tasks.spawn(async move { attempts.run(drive, blob, ungated).await });
        let task = AbortOnDropHandle::new(task);
        CloudCall { task, problem, metrics: self.metrics.clone() }
    }
}

struct Attempts<C> {
    cloud: Arc<C>,
    metrics: Metrics,
    problem: Arc<Mutex<Option<String>>>,
}

/// One method of the cloud.
#[derive(Clone, Copy)]
enum Act<'a> {
    Create,
    Bootstrap(&'a [u8]),
    Ready,
    Drain(Duration),
    Destroy,
}

impl Act<'_> {
    const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Bootstrap(_) => "bootstrap",
            Self::Ready => "ready",
            Self::Drain(_) => "drain",
            Self::Destroy => "destroy",
        }
    }
}

/// What it answered.
enum Answer {
    Done,
    Host(Host),
    Ready(Ready),
}

impl<C: Cloud> Attempts<C> {
    async fn run(&self, drive: Drive, blob: Vec<u8>, ungated: bool) -> Result<Ended, Failure> {
        let Drive { mut op, kind, record, grace } = drive;
        let machine = &record.machine;
        match kind {
            Kind::Create => match self.persist(Act::Create, &mut op, machine).await? {
                Answer::Host(host) if !host.reference.is_empty() => Ok(Ended { host: Some(host) }),
                _ => Err(Failure::NamelessHost),
            },
            Kind::Configure => {
                self.persist(Act::Bootstrap(&blob), &mut op, machine).await?;
                // A secret lives no longer than it is needed.
                drop(blob);
                self.await_ready(&mut op, machine, ungated).await?;
                Ok(Ended::default())
            }
            Kind::Drain => or_gone(self.persist(Act::Drain(grace), &mut op, machine).await),
            Kind::Delete => or_gone(self.persist(Act::Destroy, &mut op, machine).await),
        }
    }

    async fn attempt(
        &self,
        act: Act<'_>,
        op: &Op,
        machine: &Machine,
    ) -> Result<Answer, CloudError> {
        let cluster = machine.cluster.as_deref().unwrap_or_default();
        match act {
            Act::Create => self.cloud.create(op, machine).await.map(Answer::Host),
            Act::Bootstrap(blob) => {
                self.cloud.bootstrap(op, machine, cluster, blob).await.map(|()| Answer::Done)
            }
            Act::Ready => self.cloud.ready(op, machine, cluster).await.map(Answer::Ready),
            Act::Drain(grace) => self.cloud.drain(op, machine, grace).await.map(|()| Answer::Done),
            Act::Destroy => self.cloud.destroy(op, machine).await.map(|()| Answer::Done),
        }
    }

    /// Tries until it works, fails for good or is cancelled.
    async fn persist(
        &self,
        act: Act<'_>,
        op: &mut Op,
        machine: &Machine,
    ) -> Result<Answer, Failure> {
        let (name, mut pause) = (act.name(), FIRST_RETRY);
        loop {
            let begun = Instant::now();
            let result = self.attempt(act, op, machine).await;
            let outcome = result.as_ref().map_or_else(CloudError::label, |_| "ok");
            self.metrics.cloud_call(name, outcome, begun.elapsed());
            match result {
                Ok(answer) => return Ok(answer),
                Err(CloudError::Retry(problem)) => {
                    tracing::debug!(operation = %op.id, name, problem, "to be tried again");
                    self.note(problem);
                    self.pause(op, jittered(pause)).await?;
                    pause = (pause * 2).min(LAST_RETRY);
                    op.attempt = op.attempt.saturating_add(1);
                }
                Err(error) => return Err(Failure::Cloud(error)),
            }
        }
    }

    async fn await_ready(
        &self,
        op: &mut Op,
        machine: &Machine,
        ungated: bool,
    ) -> Result<(), Failure> {
        if active(Mutant::ConfiguredBeforeReady) {
            return Ok(());
        }
        let mut pause = FIRST_POLL;
        loop {
            match self.persist(Act::Ready, op, machine).await? {
                Answer::Ready(Ready::Yes) => return Ok(()),
                Answer::Ready(Ready::Unobservable) if ungated => return Ok(()),
                Answer::Ready(Ready::Unobservable) => return Err(Failure::Unobservable),
                _ => {
                    self.note("the node is not Ready".to_owned());
                    self.pause(op, pause).await?;
                    pause = (pause * 2).min(LAST_POLL);
                }
            }
        }
    }

    async fn pause(&self, op: &Op, pause: Duration) -> Result<(), Failure> {
        tokio::select! {
            () = op.cancelled.cancelled() => Err(Failure::TimedOut(None)),
            () = sleep(pause) => Ok(()),
        }
    }

    fn note(&self, problem: String) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
    }
}

/// No host is as good as a drained or destroyed one.
fn or_gone(result: Result<Answer, Failure>) -> Result<Ended, Failure> {
    match result {
        Ok(_) | Err(Failure::Cloud(CloudError::Gone(_))) => Ok(Ended::default()),
        Err(failure) => Err(failure),
    }
}

impl fmt::Debug for CloudCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudCall").finish_non_exhaustive()
    }
}
