//! Thousands of operators at once, measured.
//!
//! Roll-ups are sent at a fixed rate, whether or not earlier ones were answered:
//! a shard that falls behind shows in the figures instead of slowing its load.

mod demand;
mod options;
mod quantiles;
mod session;
mod tally;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bigfleet_net::{grpc, rule::Rule};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, interval, sleep_until, timeout},
};
use tonic::{Status, transport::Channel};

use self::{
    demand::Catalogue,
    session::{Common, Phase},
    tally::Tally,
};
pub use self::{options::LoadOptions, quantiles::Quantiles};
use crate::{Error, operator::unix_nanos};

/// Where a running load stands.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Sessions that stand.
    pub sessions_alive: u64,
    /// Roll-ups sent so far.
    pub sent: u64,
    /// Roll-ups answered so far.
    pub answered: u64,
}

/// What a load measured.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Sessions whose Hello was acked.
    pub sessions_opened: u64,
    /// Sessions that stood when sending was over.
    pub sessions_alive: u64,
    /// Until all sessions stood or had failed.
    pub opening: Duration,
    /// From the opening of a stream to its Hello ack.
    pub hello: Quantiles,
    /// How long roll-ups were sent.
    pub measured: Duration,
    /// Roll-ups sent.
    pub sent: u64,
    /// Roll-ups applied.
    pub accepted: u64,
    /// Roll-ups quarantined.
    pub held: u64,
    /// Roll-ups refused.
    pub rejected: u64,
    /// Roll-ups without an answer because a later one was answered: replaced
    /// while they waited.
    pub superseded: u64,
    /// Roll-ups without an answer of either kind.
    pub unanswered: u64,
    /// Answers to roll-ups that were not waited for.
    pub stray: u64,
    /// Frames that found their session's outbox full: the shard takes them more
    /// slowly than they come.
    pub dropped: u64,
    /// Answers that arrived while roll-ups were sent, per second.
    pub acks_per_second: f64,
    /// From sending a roll-up to its answer, exact to the microsecond.
    pub latency: Quantiles,
    /// How late this process itself sent its roll-ups; large figures mean that
    /// the generator was the bottleneck.
    pub behind: Quantiles,
    /// Bootstrap requests answered.
    pub bootstraps: u64,
    /// Reclaim instructions answered.
    pub reclaims: u64,
    /// Frames of other kinds.
    pub other_frames: u64,
    /// Sessions that could not be opened or ended too soon, by status code.
    pub errors: BTreeMap<&'static str, u64>,
    /// The first error or refusal in words.
    pub first_error: Option<String>,
}

/// Runs a load to its end. `progress` is called about once a second.
pub async fn run(
    options: LoadOptions,
    mut progress: impl FnMut(Progress),
) -> Result<Figures, Error> {
    options.check()?;
    let begun = Instant::now();
    let (warm_up, duration, patience) = (options.warm_up, options.duration, options.patience);
    let catalogue = Catalogue::new(options.needs_per_roll_up);
    let epoch = (begun, unix_nanos());
    let common = Arc::new(Common { options, catalogue, tally: Tally::default(), epoch });
    let tally = &common.tally;
    let mut tell = || {
        progress(Progress {
            elapsed: begun.elapsed(),
            sessions_alive: tally.alive(),
            sent: tally.sent.get(),
            answered: tally.answered(),
        });
    };

    let phase = watch::Sender::new(Phase::Opening);
    let (opening, mut all_opened) = mpsc::channel::<()>(1);
    let mut tasks = open_all(&common, &phase, &opening);
    drop(opening);
    // Nothing is ever sent: the channel closes when every session has let go.
    let opened = all_opened.recv();
    if timeout(patience, reporting(&mut tell, opened)).await.is_err() {
        tracing::warn!(opened = tally.opened.get(), "not all sessions were opened in time");
    }
    let opening = begun.elapsed();

    let begin = Instant::now();
    let (start, end) = (begin + warm_up, begin + warm_up + duration);
    phase.send_replace(Phase::Sending(begin, end));
    if !warm_up.is_zero() {
        reporting(&mut tell, sleep_until(start)).await;
        tally.begin_anew();
    }
    reporting(&mut tell, sleep_until(end)).await;
    let (answered, sessions_alive) = (tally.answered(), tally.alive());
    let measured = start.elapsed();
    phase.send_replace(Phase::Ending(begin, end));
    let left = async { while tasks.join_next().await.is_some() {} };
    if timeout(patience, reporting(&mut tell, left)).await.is_err() {
        // What is not answered by now is counted as such.
        phase.send_replace(Phase::Over);
        let cut = async { while tasks.join_next().await.is_some() {} };
        if timeout(Duration::from_secs(1), cut).await.is_err() {
            tracing::warn!("some connections could not even be dialled");
        }
    }
    tell();
    Ok(figures(tally, opening, measured, answered, sessions_alive))
}

/// Waits and tells about it once a second.
async fn reporting<T>(tell: &mut impl FnMut(), wait: impl Future<Output = T>) -> T {
    let mut wait = std::pin::pin!(wait);
    let mut second = interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            done = wait.as_mut() => return done,
            _ = second.tick() => tell(),
        }
    }
}

fn open_all(
    common: &Arc<Common>,
    phase: &watch::Sender<Phase>,
    opening: &mpsc::Sender<()>,
) -> JoinSet<()> {
    let options = &common.options;
    let dials = Arc::new(Semaphore::new(options.dials));
    let mut tasks = JoinSet::new();
    for first in (0..options.sessions).step_by(options.sessions_per_connection) {
        let last = (first + options.sessions_per_connection).min(options.sessions);
        let (common, phase, opening) = (common.clone(), phase.subscribe(), opening.clone());
        let dials = dials.clone();
        tasks.spawn(async move {
            let Ok(dial) = dials.acquire_owned().await else { return };
            let channel = match connect(&common, first).await {
                Ok(channel) => channel,
                Err(status) => {
                    (first..last).for_each(|_| common.tally.failed(&status));
                    return;
                }
            };
            let dial = Arc::new(dial);
            let sessions = (first..last).map(|number| {
                let held = (opening.clone(), dial.clone());
                session::run(common.clone(), number, channel.clone(), phase.clone(), held)
            });
            let mut sessions: JoinSet<()> = sessions.collect();
            drop((opening, dial, channel));
            while sessions.join_next().await.is_some() {}
        });
    }
    tasks
}

async fn connect(common: &Common, session: usize) -> Result<Channel, Status> {
    let security = common.options.security_of(&common.options.cluster(session));
    grpc::connect(&common.options.addr, &security, Rule::any_shard())
        .await
        .map_err(|error| Status::unavailable(error.to_string()))
}

fn figures(
    tally: &Tally,
    opening: Duration,
    measured: Duration,
    answered: u64,
    sessions_alive: u64,
) -> Figures {
    let (errors, first_error) = tally.failures();
    Figures {
        sessions_opened: tally.opened.get(),
        sessions_alive,
        opening,
        hello: tally.hello.quantiles(),
        measured,
        sent: tally.sent.get(),
        accepted: tally.accepted.get(),
        held: tally.held.get(),
        rejected: tally.rejected.get(),
        superseded: tally.superseded.get(),
        unanswered: tally.unanswered.get(),
        stray: tally.stray.get(),
        dropped: tally.dropped.get(),
        acks_per_second: answered as f64 / measured.as_secs_f64().max(f64::MIN_POSITIVE),
        latency: tally.latency.quantiles(),
        behind: tally.behind.quantiles(),
        bootstraps: tally.bootstraps.get(),
        reclaims: tally.reclaims.get(),
        other_frames: tally.other_frames.get(),
        errors,
        first_error,
    }
}
