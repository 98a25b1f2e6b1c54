//! The drains that run, and their calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_in_cluster::{Lane, Paced, eviction, refusal};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::core::shortened;
use super::{
    Answer, Drain, IN_FLIGHT, Input, Outcome, PodName, PodView, Rotation, Todo, remaining,
};
use crate::dispatch::{Clock, Moment};
use crate::metrics::EvictionOutcome;
use crate::nodes::effect::Start;

/// How long the last look at a node's pods may take: the shard waits 5 s past the deadline.
const LAST_LOOK: Duration = Duration::from_secs(3);

/// What a drain tells those who started it.
pub(crate) trait Listener: Send + Sync + 'static {
    /// A pod was evicted.
    fn evicted(&self, start: &Start, pod: &PodView);
    /// An eviction was answered.
    fn answered(&self, outcome: EvictionOutcome);
    /// A pod cannot be evicted for now.
    fn blocked(&self, start: &Start, pod: &PodName, why: &str);
    /// The drain is over.
    fn ended(self: Arc<Self>, start: &Start, outcome: &Outcome, took: Duration);
}

/// The drains that run. Clones share one state.
#[derive(Clone)]
pub(crate) struct Drains {
    shared: Arc<Shared>,
}

struct Shared {
    paced: Paced,
    clock: Clock,
    own_pod: Option<PodName>,
    running: Mutex<HashMap<u64, Running>>,
    rotation: Mutex<Rotation<Call>>,
}

/// How a running drain is reached.
struct Running {
    inputs: mpsc::UnboundedSender<Input>,
    deadline: Arc<AtomicU64>,
    stop: CancellationToken,
    began: Moment,
}

/// An eviction that waits for its turn.
struct Call {
    pod: PodView,
    start: Arc<Start>,
    inputs: mpsc::UnboundedSender<Input>,
    deadline: Arc<AtomicU64>,
    stop: CancellationToken,
    listener: Arc<dyn Listener>,
}

impl Drains {
    /// None runs.
    pub(crate) fn new(paced: Paced, clock: Clock, own_pod: Option<PodName>) -> Self {
        let running = Mutex::default();
        let rotation = Mutex::new(Rotation::new(IN_FLIGHT));
        Self { shared: Arc::new(Shared { paced, clock, own_pod, running, rotation }) }
    }

    /// Starts a drain.
    pub(crate) fn start(&self, start: Start, listener: Arc<dyn Listener>) {
        let (inputs, arrivals) = mpsc::unbounded_channel();
        let deadline = Arc::new(AtomicU64::new(millis(start.deadline)));
        let stop = CancellationToken::new();
        let running = Running {
            inputs: inputs.clone(),
            deadline: deadline.clone(),
            stop: stop.clone(),
            began: self.shared.clock.now(),
        };
        lock(&self.shared.running).insert(start.number, running);
        let task = Task {
            drains: self.clone(),
            start: start.into(),
            inputs,
            deadline,
            stop: stop.clone(),
            listener,
        };
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = task.run(arrivals) => {}
            }
        });
    }

    /// A drain is to end earlier.
    pub(crate) fn sooner(&self, number: u64, deadline: Moment) {
        if let Some(running) = lock(&self.shared.running).get(&number) {
            running.deadline.fetch_min(millis(deadline), Ordering::SeqCst);
            // Closed only once the drain has ended.
            let _ = running.inputs.send(Input::Sooner(deadline));
        }
    }

    /// Stops a drain; no eviction of it is sent from now on. How long it ran.
    pub(crate) fn stop(&self, number: u64) -> Option<Duration> {
        let running = lock(&self.shared.running).remove(&number)?;
        running.stop.cancel();
        Some(self.shared.clock.now().saturating_sub(running.began))
    }

    /// Stops all drains.
    pub(crate) fn stop_all(&self) {
        for (_, running) in lock(&self.shared.running).drain() {
            running.stop.cancel();
        }
    }

    /// Makes the calls that may be made now.
    fn turn(&self) {
        loop {
            let Some(call) = lock(&self.shared.rotation).take() else { return };
            let drains = self.clone();
            tokio::spawn(async move {
                let answer = drains.evict(&call).await;
                lock(&drains.shared.rotation).done();
                // The drain may have ended meanwhile.
                let _ = call.inputs.send(Input::Answered { uid: call.pod.uid.clone(), answer });
                drains.turn();
            });
        }
    }

    async fn evict(&self, call: &Call) -> Answer {
        let clock = self.shared.clock;
        // The time left; none once it is too late.
        let left = || {
            let deadline = Moment::from_millis(call.deadline.load(Ordering::SeqCst));
            let left = deadline.saturating_sub(clock.now());
            (!call.stop.is_cancelled() && !left.is_zero()).then_some(left)
        };
        if left().is_none() {
            return Answer::NotSent;
        }
        let sent = self.shared.paced.call(Lane::Eviction, |client| async move {
            // The turn may have been long in coming, and counts against the pod's grace.
            let Some(left) = left() else { return Ok(false) };
            let PodView { name, uid, grace_seconds, .. } = &call.pod;
            let grace = shortened(*grace_seconds, left);
            eviction::evict(client, &name.namespace, &name.name, uid, grace).await?;
            Ok(true)
        });
        let deadline = Moment::from_millis(call.deadline.load(Ordering::SeqCst));
        let sent = tokio::select! {
            biased;
            () = call.stop.cancelled() => return Answer::NotSent,
            // Taken back, so that a slow server does not act on it after the deadline.
            () = clock.sleep_until(deadline) => {
                return Answer::Failing("no answer in time".into(), None);
            }
            sent = sent => sent,
        };
        let (outcome, answer) = read(sent);
        if let Some(outcome) = outcome {
            call.listener.answered(outcome);
        }
        if outcome == Some(EvictionOutcome::Evicted) {
            call.listener.evicted(&call.start, &call.pod);
        }
        answer
    }
}

/// What the server's answer means, and how it is counted; what was not sent is not.
fn read(sent: Result<bool, kube::Error>) -> (Option<EvictionOutcome>, Answer) {
    use EvictionOutcome as Counted;
    let error = match sent {
        Ok(true) => return (Some(Counted::Evicted), Answer::Going),
        Ok(false) => return (None, Answer::NotSent),
        Err(error) => error,
    };
    let pause = refusal::retry_after(&error);
    let (outcome, answer) = match refusal::code(&error) {
        Some(404) => (Counted::Gone, Answer::Going),
        Some(409) => (Counted::Conflict, Answer::Conflict),
        Some(403) => (Counted::Forbidden, Answer::Forbidden("eviction forbidden".into())),
        Some(429) if refusal::is_disruption_budget(&error) => {
            (Counted::Blocked, Answer::Blocked("disruption budget".into(), budget_pause(&error)))
        }
        Some(429) => (Counted::Error, Answer::Failing("server overloaded".into(), pause)),
        Some(code) => (Counted::Error, Answer::Failing(format!("server error {code}"), pause)),
        None => (Counted::Error, Answer::Failing("server unreachable".into(), pause)),
    };
    (Some(outcome), answer)
}

/// How long the server asks to wait for a budget that it is still working out.
fn budget_pause(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

struct Task {
    drains: Drains,
    start: Arc<Start>,
    inputs: mpsc::UnboundedSender<Input>,
    deadline: Arc<AtomicU64>,
    stop: CancellationToken,
    listener: Arc<dyn Listener>,
}

impl Task {
    async fn run(&self, mut arrivals: mpsc::UnboundedReceiver<Input>) {
        let shared = &self.drains.shared;
        let clock = shared.clock;
        let began = clock.now();
        let start = &self.start;
        let mut drain = Drain::new(start.deadline, start.overdue, shared.own_pod.clone());
        let mut input = Input::Time;
        loop {
            let now = clock.now();
            let deadline = Moment::from_millis(self.deadline.load(Ordering::SeqCst));
            let mut wake = (now < deadline).then_some(deadline);
            for todo in drain.step(input, now) {
                match todo {
                    Todo::List => self.list(now >= deadline),
                    Todo::Evict(pod) => self.evict(pod),
                    Todo::Wake(at) => wake = Some(at),
                    Todo::TellBlocked(pod, why) => self.listener.blocked(start, &pod, &why),
                    Todo::End(outcome) => {
                        lock(&shared.running).remove(&start.number);
                        let took = clock.now().saturating_sub(began);
                        self.listener.clone().ended(start, &outcome, took);
                        return;
                    }
                }
            }
            let timer = async {
                match wake {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            input = tokio::select! {
                // We hold a sender ourselves, so the channel never closes.
                arrival = arrivals.recv() => arrival.unwrap_or(Input::Time),
                () = timer => Input::Time,
            };
        }
    }

    fn list(&self, last: bool) {
        let (paced, inputs) = (self.drains.shared.paced.clone(), self.inputs.clone());
        let node = self.start.node.name.clone();
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let list = paced.call(Lane::Eviction, |client| async move {
                let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
                Api::<Pod>::all(client).list(&params).await
            });
            let within = if last { LAST_LOOK } else { Duration::MAX };
            let listed = tokio::select! {
                () = stop.cancelled() => return,
                listed = tokio::time::timeout(within, list) => listed,
            };
            let input = match listed {
                Ok(Ok(pods)) => Input::Listed(pods.items.iter().filter_map(remaining).collect()),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "pods of a draining node could not be listed");
                    Input::ListFailed
                }
                Err(_) => Input::ListFailed,
            };
            // The drain may have ended meanwhile.
            let _ = inputs.send(input);
        });
    }

    fn evict(&self, pod: PodView) {
        let call = Call {
            pod,
            start: self.start.clone(),
            inputs: self.inputs.clone(),
            deadline: self.deadline.clone(),
            stop: self.stop.clone(),
            listener: self.listener.clone(),
        };
        lock(&self.drains.shared.rotation).push(&self.start.node.name, call);
        self.drains.turn();
    }
}

fn millis(moment: Moment) -> u64 {
    u64::try_from(moment.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
