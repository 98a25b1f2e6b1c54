//! Random kills during churn: whatever was acknowledged must be found again
//! (provider chapter §7, invariant 3). A library, for longer tests than ours.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bigfleet_net::grpc::code_name;
use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineState as State, TransitionAck};
use futures_util::future::join_all;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tonic::{Code, Status};

use crate::{
    case::CREATE_FAULT,
    ensure,
    outcome::{Outcome, Stop},
    random::Random,
    shard::{Shard, Token},
    target::Instance,
    trace::Trace,
    wire::{Wire, state_name},
};

/// Machines that churn at once.
const MACHINES: usize = 12;

/// A kill waits no longer than this for its number of acknowledgements.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Create,
    Configure,
    Drain,
    Delete,
}

impl Kind {
    /// What may begin in this state.
    fn from(state: State, random: &mut Random) -> Option<Self> {
        match state {
            State::Speculative => Some(Self::Create),
            State::Idle if random.below(3) == 0 => Some(Self::Delete),
            State::Idle => Some(Self::Configure),
            State::Configured => Some(Self::Drain),
            _ => None,
        }
    }

    fn states(self) -> [State; 2] {
        match self {
            Self::Create => [State::Creating, State::Idle],
            Self::Configure => [State::Configuring, State::Configured],
            Self::Drain => [State::Draining, State::Idle],
            Self::Delete => [State::Deleting, State::Speculative],
        }
    }
}

/// What is known of one machine.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The last acknowledged operation.
    acked: Option<(Kind, String, Token)>,
    /// Sent, and the kill came before the answer.
    unanswered: Option<Kind>,
}

/// What a run of kills came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Kills.
    pub kills: u32,
    /// Acknowledgements that were found again.
    pub acknowledged: usize,
    /// Machines found FAILED with a reason.
    pub failed: usize,
}

/// A target that is killed again and again.
#[derive(Debug)]
pub struct Harness {
    instance: Instance,
    random: Random,
    shard: Shard,
    trace: Trace,
    known: HashMap<String, Known>,
    ids: HashSet<String>,
    figures: Figures,
}

impl Harness {
    /// Takes a running target; `shard` must be new to it.
    #[must_use]
    pub fn new(instance: Instance, random: Random, shard: Shard, trace: Trace) -> Self {
        let (known, ids) = (HashMap::new(), HashSet::new());
        Self { instance, random, shard, trace, known, ids, figures: Figures::default() }
    }

    /// What it came to so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// The target, when the rounds are over.
    #[must_use]
    pub fn into_instance(self) -> Instance {
        self.instance
    }

    /// Churns, kills at a random moment, reboots, and checks every machine.
    pub async fn round(&mut self) -> Outcome {
        let machines = self.rested().await?;
        self.churn_and_kill(&machines).await?;
        self.figures.kills += 1;
        self.trace.note(format!("kill {}, boot again", self.figures.kills));
        self.instance.reboot().await.map_err(|error| Stop::Failed(error.to_string()))?;
        self.check().await
    }

    fn wire(&self) -> Wire {
        self.instance.wire().recording(self.trace.clone())
    }

    async fn fleet(&self) -> Outcome<Vec<Machine>> {
        let list = self.wire().list(ListFilter::default()).await;
        Ok(list.map_err(|status| stop("List", &status))?.machines)
    }

    /// Enough machines at rest, when what the last kill left has come to rest.
    async fn rested(&mut self) -> Outcome<Vec<Machine>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let fleet = self.fleet().await?;
            let machines = self.choose(&fleet);
            let past = machines.iter().filter(|machine| self.known.contains_key(&machine.id));
            if past.count() >= MACHINES.min(self.known.len()) || Instant::now() > deadline {
                return Ok(machines);
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Machines at rest, in any order.
    fn choose(&mut self, fleet: &[Machine]) -> Vec<Machine> {
        let at_rest = |machine: &&Machine| {
            matches!(machine.state(), State::Speculative | State::Idle | State::Configured)
                && !machine.labels.contains_key(CREATE_FAULT)
        };
        let mut machines: Vec<_> = fleet.iter().filter(at_rest).cloned().collect();
        self.random.shuffle(&mut machines);
        // Those with a past first: there is more to lose.
        machines.sort_by_key(|machine| !self.known.contains_key(&machine.id));
        machines.truncate(MACHINES);
        machines
    }

    /// One call on each machine at once; the kill comes with the n-th answer,
    /// when others are on their way to the store.
    async fn churn_and_kill(&mut self, machines: &[Machine]) -> Outcome {
        let wire = self.wire();
        let mut calls = Vec::new();
        for machine in machines {
            let Some(kind) = Kind::from(machine.state(), &mut self.random) else { continue };
            let token = self.shard.next();
            self.known.entry(machine.id.clone()).or_default().unanswered = Some(kind);
            calls.push((machine.id.clone(), kind, token));
        }
        let fatal = 1 + self.random.below(calls.len().max(1) as u64) as usize;
        let (answered, enough) = (AtomicUsize::new(0), Notify::new());
        let answers = Arc::new(Mutex::new(Vec::new()));
        let all = join_all(calls.iter().map(|(id, kind, token)| {
            let (wire, answers, answered, enough) = (&wire, &answers, &answered, &enough);
            async move {
                let answer = send(wire, id, *kind, token).await;
                lock(answers).push((id.clone(), *kind, token.clone(), answer));
                if answered.fetch_add(1, Ordering::Relaxed) + 1 >= fatal {
                    enough.notify_one();
                }
            }
        }));
        // Sometimes transitions end first.
        let linger = Duration::from_millis(self.random.below(4) * self.random.below(40));
        tokio::select! {
            _ = all => {}
            () = async {
                let _ = timeout(PATIENCE, enough.notified()).await;
                sleep(linger).await;
            } => {}
        }
        self.instance.kill().await;
        let answers = std::mem::take(&mut *lock(&answers));
        for (id, kind, token, answer) in answers {
            self.learn(&id, kind, token, answer)?;
        }
        Ok(())
    }

    fn learn(
        &mut self,
        id: &str,
        kind: Kind,
        token: Token,
        answer: Result<TransitionAck, Status>,
    ) -> Outcome {
        match answer {
            Ok(ack) => {
                let fresh = self.ids.insert(ack.operation_id.clone());
                ensure!(fresh, "{kind:?} of {id:?} reuses the id {:?}", ack.operation_id);
                self.known.insert(
                    id.to_owned(),
                    Known { acked: Some((kind, ack.operation_id, token)), unanswered: None },
                );
                self.figures.acknowledged += 1;
                Ok(())
            }
            // The kill, or a connection that died with it: nobody knows.
            Err(status)
                if matches!(
                    status.code(),
                    Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded
                ) =>
            {
                Ok(())
            }
            Err(status) => Err(stop(&format!("{kind:?} of {id:?}"), &status)),
        }
    }

    /// Every machine of which something is known.
    async fn check(&mut self) -> Outcome {
        let wire = self.wire();
        let known: Vec<_> = self.known.drain().collect();
        for (id, known) in known {
            let seen = wire.get(&id).await.map_err(|status| stop("Get", &status))?;
            if let Some(known) = self.check_one(&wire, &seen, known).await? {
                self.known.insert(id, known);
            }
        }
        Ok(())
    }

    /// What is still known of a machine after the kill.
    async fn check_one(
        &mut self,
        wire: &Wire,
        seen: &Machine,
        known: Known,
    ) -> Outcome<Option<Known>> {
        let (id, state) = (&seen.id, seen.state());
        let Some((kind, operation, token)) = &known.acked else { return Ok(None) };
        // Its mark is there: the acknowledged token is stale now.
        let zombie = send(wire, id, *kind, token).await;
        let code = zombie.as_ref().map_or_else(Status::code, |_| Code::Ok);
        ensure!(
            code == Code::FailedPrecondition,
            "the acknowledged token {token} of {id:?} answers {} after the kill",
            code_name(code)
        );
        if state == State::Failed {
            ensure!(!seen.last_error.is_empty(), "{id:?} is FAILED without last_error");
            self.figures.failed += 1;
            return Ok(None);
        }
        let unanswered = known.unanswered.into_iter().flat_map(Kind::states);
        let mut allowed = kind.states().into_iter().chain(unanswered);
        ensure!(
            allowed.any(|allowed| allowed == state),
            "{kind:?} of {id:?} was acknowledged as {operation:?}; after the kill it is {}",
            state_name(seen.state)
        );
        // Another operation may have begun since: nobody can tell which.
        if known.unanswered.is_some() {
            return Ok(None);
        }
        if *kind == Kind::Configure {
            let kept = seen.shard_metadata == metadata(token) && seen.cluster == CLUSTER;
            ensure!(kept, "{id:?} lost the binding that was acknowledged as {operation:?}");
        }
        let again = send(wire, id, *kind, &self.shard.next()).await;
        let again = again.map_err(|status| stop(&format!("{kind:?} of {id:?} again"), &status))?;
        ensure!(
            again.operation_id == *operation,
            "{kind:?} of {id:?} was {operation:?} and is {:?} after the kill",
            again.operation_id
        );
        Ok(Some(known))
    }
}

/// Whom the churn binds to.
const CLUSTER: &str = "kill-cluster";

/// What the churn binds with.
fn metadata(token: &Token) -> BTreeMap<String, String> {
    [("kept".to_owned(), token.to_string())].into()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn send(wire: &Wire, id: &str, kind: Kind, token: &Token) -> Result<TransitionAck, Status> {
    match kind {
        Kind::Create => wire.create(id, token).await,
        Kind::Configure => wire.configure(id, CLUSTER, metadata(token), Vec::new(), token).await,
        Kind::Drain => wire.drain(id, 0, token).await,
        Kind::Delete => wire.delete(id, token).await,
    }
}

fn stop(what: &str, status: &Status) -> Stop {
    Stop::Failed(format!("{what} answers {} ({})", code_name(status.code()), status.message()))
}
