//! Runs the tests one by one and gathers what they came to.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bigfleet_wire::v1alpha1::ListFilter;
use tokio::sync::OnceCell;

use crate::{
    Error,
    case::Case,
    catalogue::{self, Area, Profile, Test},
    filter::Filter,
    gates::{self, Gate, Gates},
    outcome::{Outcome, Stop},
    progress::Progress,
    report::{Report, Tested, readiness},
    target::{Instance, Target},
    tls::Credentials,
    verdict::Status,
    wire::Wire,
};

/// Machines of a booted target outside the scale lane.
pub const SEED_COUNT: u64 = 512;

/// A test that takes longer than this (and its soak) is stuck.
const LONGEST_TEST: Duration = Duration::from_secs(300);

/// What a run was asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the target claims to be.
    pub profiles: Vec<Profile>,
    /// Which tests to run.
    pub filter: Filter,
    /// Decides every random choice.
    pub seed: u64,
    /// Stretches every wait.
    pub timeout_scale: f64,
    /// How long the scale lane churns.
    pub soak: Duration,
    /// Machines of the scale lane.
    pub scale_seed: u64,
    /// HTTP address of the target's metrics, to read its readiness mode.
    pub metrics: Option<String>,
    /// The gates, if they are known; else they are probed.
    pub gates: Option<Gates>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profiles: vec![Profile::Core],
            filter: Filter::default(),
            seed: 1,
            timeout_scale: 1.0,
            soak: Duration::from_secs(10),
            scale_seed: 8_000,
            metrics: None,
            gates: None,
        }
    }
}

/// What all tests of a run share.
#[derive(Debug)]
pub struct Env {
    pub(crate) options: Options,
    pub(crate) target: Target,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) used: Mutex<HashSet<String>>,
    /// Differs from run to run: a target that lives on remembers old shards.
    pub(crate) run: String,
    gates: OnceLock<Gates>,
}

impl Env {
    pub(crate) fn gates(&self) -> Gates {
        self.gates.get().copied().unwrap_or_default()
    }
}

/// A target with the roads to it.
struct Roads {
    main: Wire,
    /// Killed when the run is over.
    instance: Option<Instance>,
    scale: OnceCell<Option<Instance>>,
}

/// Runs every test that the profiles ask for.
pub async fn run(
    options: Options,
    target: Target,
    credentials: Credentials,
    progress: &Progress,
) -> Result<Report, Error> {
    let started = time::OffsetDateTime::now_utc();
    let unique = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let env = Arc::new(Env {
        options,
        target,
        credentials: Arc::new(credentials),
        used: Mutex::default(),
        run: format!("{:x}", unique & 0xff_ffff_ffff ^ u128::from(std::process::id()) << 40),
        gates: OnceLock::new(),
    });
    let roads = roads(&env).await?;
    let dur = env.target.command().is_some_and(|command| command.keeps_state());
    let slots = !env.options.profiles.contains(&Profile::BareMetal);
    let gates = match env.options.gates {
        Some(gates) => gates,
        None => gates::probe(&Case::new(env.clone(), "gates", &roads.main), slots, dur).await,
    };
    let gates = *env.gates.get_or_init(|| gates);

    let mut tests = Vec::new();
    for test in catalogue::all().filter(|test| test.is_asked_by(&env.options.profiles)) {
        progress.begins(&format!("{} {}", test.id, test.title));
        let tested = one(&env, &roads, test, gates).await;
        progress.ended(test.id, &tested.status, tested.took);
        tests.push(tested);
    }
    let told = roads.instance.as_ref().and_then(Instance::metrics);
    let readiness = readiness::mode(env.options.metrics.as_deref().or(told)).await;
    Ok(Report::new(&env.options, &env.target, gates, started, readiness, tests))
}

async fn roads(env: &Env) -> Result<Roads, Error> {
    let scale = env.options.timeout_scale;
    let instance = match &env.target {
        Target::Address(_) => None,
        Target::Command(command) => {
            Some(Instance::boot(command, env.credentials.clone(), SEED_COUNT, scale).await?)
        }
    };
    let main = match (&env.target, &instance) {
        (Target::Address(addr), _) => Wire::new(addr.clone(), env.credentials.clone(), scale),
        (Target::Command(_), Some(instance)) => instance.wire().clone(),
        (Target::Command(_), None) => return Err(Error::Usage("the target was not booted".into())),
    };
    let first = ListFilter { max_results: 1, ..ListFilter::default() };
    if let Err(status) = main.list(first).await {
        return Err(Error::Unreachable {
            addr: main.addr().to_owned(),
            problem: status.message().to_owned(),
            speaks: env.credentials.speaks(),
        });
    }
    Ok(Roads { main, instance, scale: OnceCell::new() })
}

impl Roads {
    /// The road of this test: the scale lane has a fleet of its own, where the
    /// suite can boot one.
    async fn of(&self, test: &Test, env: &Env) -> Outcome<Wire> {
        let command = env.target.command().filter(|command| command.takes_seed());
        let (Area::Scale, Some(command)) = (test.area, command) else {
            return Ok(self.main.clone());
        };
        let boot = || async {
            let options = &env.options;
            let credentials = env.credentials.clone();
            Instance::boot(command, credentials, options.scale_seed, options.timeout_scale)
                .await
                .ok()
        };
        match self.scale.get_or_init(boot).await {
            Some(instance) => Ok(instance.wire().clone()),
            None => Err(Stop::Failed("the target does not boot with --scale-seed machines".into())),
        }
    }
}

async fn one(env: &Arc<Env>, roads: &Roads, test: &'static Test, gates: Gates) -> Tested {
    if !env.options.filter.takes(test.id) {
        return Tested::of(test, Status::Filtered);
    }
    if let Some(closed) = test.gates.iter().find(|&&gate| !gates.is_open(gate)) {
        return Tested::of(test, Status::Skipped(Gate::closed(*closed).to_owned()));
    }
    let begun = Instant::now();
    let wire = match roads.of(test, env).await {
        Ok(wire) => wire,
        Err(stop) => return Tested::of(test, status(Err(stop))),
    };
    let case = Case::new(env.clone(), test.id, &wire);
    let limit = LONGEST_TEST.mul_f64(env.options.timeout_scale.max(1.0)) + env.options.soak * 3;
    // A task of its own: a test that panics must not end the run.
    let mut task = tokio::spawn((test.run)(case.clone()));
    let outcome = match tokio::time::timeout(limit, &mut task).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(Stop::Failed(format!("the test itself broke: {panic}"))),
        Err(_) => {
            task.abort();
            Err(Stop::Failed(format!("the test did not end within {limit:?}")))
        }
    };
    let took = begun.elapsed();
    let evidence = case.trace().calls();
    case.tidy().await;
    Tested { took, evidence, notes: case.notes(), ..Tested::of(test, status(outcome)) }
}

fn status(outcome: Outcome) -> Status {
    match outcome {
        Ok(()) => Status::Passed,
        Err(Stop::Failed(reason)) => Status::Failed(reason),
        Err(Stop::Skipped(reason)) => Status::Skipped(reason),
        Err(Stop::Short(reason)) => Status::Short(reason),
    }
}
