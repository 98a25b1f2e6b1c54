//! The demo as whoever watches it has it: one fleet, one scenario at a time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};

use crate::{
    Error,
    fleet::Fleet,
    scenario::{
        self, Scenario,
        record::{Run, Verdict},
    },
};

/// How long a run that has ended may still have the stage.
const LET_GO: Duration = Duration::from_secs(1);

/// A running demo.
pub(crate) struct Show {
    pub(crate) fleet: Fleet,
    pub(crate) seed: u64,
    pub(crate) began: Instant,
    /// How long it took until everybody answered.
    pub(crate) started_in: Duration,
    guided: bool,
    /// The last run, or the one that is on.
    record: Arc<Mutex<Run>>,
    /// Held while something is played.
    turn: Arc<tokio::sync::Mutex<()>>,
    playing: AtomicBool,
    results: Mutex<BTreeMap<&'static str, Results>>,
    problem: Mutex<Option<String>>,
}

/// How the runs of a scenario ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Results {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) last: Option<(Verdict, i64)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What can be played.
#[derive(Clone, Copy)]
pub(crate) enum Piece {
    Reset,
    Scenario(&'static Scenario),
}

impl Show {
    /// Starts the fleet and waits until everybody in it answers.
    pub(crate) async fn open(seed: u64, guided: bool, kubernetes: bool) -> Result<Self, Error> {
        let began = Instant::now();
        let fleet = Fleet::start(seed, kubernetes).await?;
        if let Err(error) = fleet.until_up().await {
            fleet.stop().await?;
            return Err(error);
        }
        let mut none = Run::begin("reset", &[], scenario::stage::now());
        none.end(None, scenario::stage::now());
        Ok(Self {
            fleet,
            seed,
            began,
            started_in: began.elapsed(),
            guided,
            record: Arc::new(Mutex::new(none)),
            turn: Arc::default(),
            playing: AtomicBool::new(false),
            results: Mutex::default(),
            problem: Mutex::default(),
        })
    }

    /// Whether something is being played.
    pub(crate) fn is_playing(&self) -> bool {
        self.playing.load(Ordering::Relaxed)
    }

    /// The run that is on, or the last one.
    pub(crate) fn run(&self) -> Run {
        lock(&self.record).clone()
    }

    /// How the runs of a scenario ended.
    pub(crate) fn results(&self, name: &str) -> Results {
        lock(&self.results).get(name).copied().unwrap_or_default()
    }

    /// Plays, when whatever is on has ended.
    pub(crate) async fn play(&self, piece: Piece) -> Run {
        let turn = self.turn.lock().await;
        let run = self.play_now(piece).await;
        drop(turn);
        run
    }

    /// Plays, unless something is on. What is on is told when this returns.
    pub(crate) async fn try_play(self: Arc<Self>, piece: Piece) -> bool {
        let turn = self.turn.clone();
        let turn = match self.run().state {
            Verdict::Running => turn.try_lock_owned().ok(),
            // It has ended, and lets go in a moment.
            _ => timeout(LET_GO, turn.lock_owned()).await.ok(),
        };
        let Some(turn) = turn else { return false };
        self.begin(piece);
        tokio::spawn(async move {
            self.play_now(piece).await;
            drop(turn);
        });
        true
    }

    fn begin(&self, piece: Piece) {
        *lock(&self.record) = match piece {
            Piece::Reset => scenario::opening_of_reset(),
            Piece::Scenario(scenario) => scenario.opening(),
        };
        self.playing.store(true, Ordering::Relaxed);
    }

    async fn play_now(&self, piece: Piece) -> Run {
        self.begin(piece);
        match piece {
            Piece::Reset => scenario::play_reset(&self.fleet, &self.record).await,
            Piece::Scenario(scenario) => {
                scenario.play(&self.fleet, self.guided, &self.record).await;
                let run = self.run();
                let mut all = lock(&self.results);
                let results = all.entry(scenario.name).or_default();
                match run.state {
                    Verdict::Passed => results.passed += 1,
                    _ => results.failed += 1,
                }
                let took = run.ended_at_unix_ms.unwrap_or_default() - run.started_at_unix_ms;
                results.last = Some((run.state, took));
            }
        }
        self.playing.store(false, Ordering::Relaxed);
        self.run()
    }

    /// Why the fleet is not what it should be, if it is not.
    pub(crate) fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    /// Looks after the processes; one that dies by itself is a problem, and stays one until it
    /// is started again.
    pub(crate) async fn look_after(&self) {
        loop {
            if let Err(error) = self.fleet.check().await {
                *lock(&self.problem) = Some(error.to_string());
            }
            if self.fleet.missing().is_none() {
                *lock(&self.problem) = None;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Ends the fleet.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        self.fleet.stop().await
    }
}
