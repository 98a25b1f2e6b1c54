//! The vocabulary of the tests: pick machines, walk them, watch them, and say
//! what must come back. A test reads like its row of the specification.

mod answer;
mod calls;
mod observe;
mod pick;
mod rej;
mod tidy;
mod walk;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use answer::{Ack, Answer};
pub use bigfleet_wire::v1alpha1::{Machine, MachineState as State};
pub use calls::{Binding, Listing};
pub use observe::Seen;
pub use pick::CREATE_FAULT;

use crate::{
    gates::Gates,
    outcome::{Outcome, Stop},
    random::Random,
    runner::Env,
    shard::Shard,
    target::Instance,
    trace::Trace,
    wire::Wire,
};

/// Metadata as it travels.
pub type Metadata = BTreeMap<String, String>;

/// Time to settle, before `--timeout-scale` (provider chapter §11).
pub const SETTLE: Duration = Duration::from_secs(15);

/// How long a rejection must leave the machine alone.
pub const QUIET: Duration = Duration::from_millis(250);

/// One test's hands; clones are the same test.
#[derive(Debug, Clone)]
pub struct Case {
    env: Arc<Env>,
    id: &'static str,
    wire: Wire,
    trace: Trace,
    me: Arc<Shard>,
    own: Arc<Own>,
    /// Whether this road leads to the run's own target, whose machines must be
    /// given back, and not to one that the test booted and throws away.
    home: bool,
}

/// What the test gathers.
#[derive(Debug)]
struct Own {
    picked: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
    random: Mutex<Random>,
    shards: Mutex<u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Case {
    /// A test about to begin on this road.
    pub(crate) fn new(env: Arc<Env>, id: &'static str, wire: &Wire) -> Self {
        let trace = Trace::default();
        let own = Own {
            picked: Mutex::default(),
            notes: Mutex::default(),
            random: Mutex::new(Random::new(env.options.seed, id)),
            shards: Mutex::new(0),
        };
        let me = Arc::new(Shard::new(format!("conf-{}-{}", env.run, id.to_lowercase())));
        Self {
            wire: wire.recording(trace.clone()),
            env,
            id,
            trace,
            me,
            own: Arc::new(own),
            home: true,
        }
    }

    /// The same test on another road.
    #[must_use]
    pub fn on(&self, wire: &Wire) -> Self {
        let home = self.home && wire.addr() == self.wire.addr();
        Self { wire: wire.recording(self.trace.clone()), home, ..self.clone() }
    }

    /// The same test over connections of its own.
    #[must_use]
    pub fn second_connection(&self) -> Self {
        self.on(&self.wire.afresh())
    }

    /// The road, for what has no word of its own.
    #[must_use]
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// What was called so far.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Which doors are open.
    #[must_use]
    pub fn gates(&self) -> Gates {
        self.env.gates()
    }

    /// Everything the run was asked for.
    #[must_use]
    pub fn options(&self) -> &crate::runner::Options {
        &self.env.options
    }

    /// The shard that this test plays unless it says otherwise.
    #[must_use]
    pub fn me(&self) -> &Shard {
        &self.me
    }

    /// Another shard, with an id that no other test and no other run uses.
    #[must_use]
    pub fn shard(&self) -> Arc<Shard> {
        let mut shards = lock(&self.own.shards);
        *shards += 1;
        Arc::new(Shard::new(format!("{}-{shards}", self.me.id())))
    }

    /// A cluster of this test alone.
    #[must_use]
    pub fn cluster(&self, name: &str) -> String {
        format!("conf-{}-{}-{name}", self.env.run, self.id.to_lowercase())
    }

    /// An id that no machine has.
    #[must_use]
    pub fn unknown(&self, name: &str) -> String {
        format!("no-such-machine-{}-{}-{name}", self.env.run, self.id.to_lowercase())
    }

    /// Numbers that the seed decides.
    pub fn random<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut lock(&self.own.random))
    }

    /// A time of the specification, stretched by `--timeout-scale`.
    #[must_use]
    pub fn time(&self, base: Duration) -> Duration {
        base.mul_f64(self.env.options.timeout_scale)
    }

    /// A figure for the report.
    pub fn note(&self, text: impl Into<String>) {
        lock(&self.own.notes).push(text.into());
    }

    /// The figures so far.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        lock(&self.own.notes).clone()
    }

    /// Boots a target of this test alone, with further words on its command
    /// line; without a command the test cannot be done.
    pub async fn boot(&self, seed: u64, further: &[&str]) -> Outcome<Instance> {
        let Some(command) = self.env.target.command() else {
            return Err(Stop::Short("the suite cannot boot this target; give --target-cmd".into()));
        };
        self.trace.note(format!("boot {} with {seed} machines", command.program()));
        let command = command.and(further);
        let booted = Instance::boot(
            &command,
            self.env.credentials.clone(),
            seed,
            self.env.options.timeout_scale,
        );
        booted.await.map_err(|error| Stop::Failed(error.to_string()))
    }

    /// Kills a target and boots it again on its state.
    pub async fn reboot(&self, instance: &mut Instance) -> Outcome<Self> {
        self.trace.note("kill -9, boot again on the same state");
        instance.reboot().await.map_err(|error| Stop::Failed(error.to_string()))?;
        Ok(self.on(instance.wire()))
    }
}
