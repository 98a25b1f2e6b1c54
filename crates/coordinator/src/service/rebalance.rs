//! The leader's rebalancing loop (coordinator chapter §9), beside the RPCs: it takes a
//! picture in a moment, and looks at it on a thread of its own.

use std::sync::Arc;

use bigfleet_net::shutdown::Shutdown;
use tokio::{
    task::spawn_blocking,
    time::{Instant, MissedTickBehavior, interval},
};
use tonic::Status;

use super::{COMMIT_TIMEOUT, Coordinator, EVERY, Leadership, Phase, Replica, guard::Led};
use crate::{
    rebalance::{Due, Move, Pass, Picture, Rebalancer, Settings},
    reports::batches,
    state::{Command, Effect, Refused},
};

/// What a replica remembers of rebalancing while it leads.
#[derive(Debug)]
pub struct Rebalancing {
    settings: Settings,
    leading: Option<(i64, Rebalancer)>,
}

impl Rebalancing {
    /// Nothing yet.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        Self { settings, leading: None }
    }
}

impl<R: Replica> Coordinator<R> {
    /// Rebalances while this replica leads, until the stop.
    pub async fn rebalance(self: Arc<Self>, settings: Settings, shutdown: Shutdown) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut rebalancing = Rebalancing::new(settings);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if let Err(status) = self.rebalance_tick(&mut rebalancing).await {
                        tracing::warn!(%status, "not rebalanced; tried again at the next interval");
                    }
                }
                () = shutdown.token().cancelled() => return,
            }
        }
    }

    /// One second's look at transfers, and a pass if it is due.
    pub async fn rebalance_tick(&self, rebalancing: &mut Rebalancing) -> Result<(), Status> {
        let term = match self.replica.leadership() {
            Leadership::Leader { term } if self.replica.phase() == Phase::Open => term,
            Leadership::Leader { .. } | Leadership::Follower { .. } => {
                rebalancing.leading = None;
                return Ok(());
            }
        };
        let mut rebalancer = match rebalancing.leading.take() {
            Some((led, rebalancer)) if led == term => rebalancer,
            Some(_) | None => {
                let seed = getrandom::u64();
                let seed = seed.map_err(|error| Status::unavailable(error.to_string()))?;
                Rebalancer::new(rebalancing.settings.clone(), self.now().monotonic, seed)
            }
        };
        let picture = self.soft(term, |reports, state, now| {
            rebalancer.refused(reports.take_refused());
            for (kind, outcome) in rebalancer.observe(state, now.monotonic) {
                self.metrics.moved(kind, outcome);
            }
            match rebalancer.due(reports.heard(state), state.recovering(), now.monotonic) {
                Due::Yes => return Some((reports.picture(state, now), now)),
                Due::Skipped(why) => self.metrics.skipped(why, 1),
                Due::No => {}
            }
            None
        })?;
        let Some((picture, now)) = picture else {
            rebalancing.leading = Some((term, rebalancer));
            return Ok(());
        };
        let (rebalancer, pass) = self.look_at(rebalancer, picture, now.monotonic).await?;
        let (_, rebalancer) = rebalancing.leading.insert((term, rebalancer));
        self.begin(term, pass, rebalancer).await
    }

    async fn look_at(
        &self,
        mut rebalancer: Rebalancer,
        picture: Picture,
        now: std::time::Duration,
    ) -> Result<(Rebalancer, Pass), Status> {
        let began = Instant::now();
        let looked = spawn_blocking(move || {
            let pass = rebalancer.pass(&picture, now);
            (rebalancer, pass)
        });
        let (rebalancer, pass) =
            looked.await.map_err(|error| Status::internal(format!("rebalancing: {error}")))?;
        self.metrics.rebalanced(began.elapsed());
        for (why, count) in &pass.skipped {
            self.metrics.skipped(*why, *count);
        }
        Ok((rebalancer, pass))
    }

    /// Commits what a pass proposes.
    async fn begin(
        &self,
        term: i64,
        pass: Pass,
        rebalancer: &mut Rebalancer,
    ) -> Result<(), Status> {
        let count = |begun: &[Command], outcome: Move| {
            for one in begun {
                if let Command::BeginTransfer { kind, .. } = one {
                    self.metrics.moved(*kind, outcome);
                }
            }
        };
        let until = Instant::now() + COMMIT_TIMEOUT;
        for entry in batches(pass.begin) {
            let commands = match &entry {
                Command::Batch { commands } => commands.clone(),
                one => vec![one.clone()],
            };
            let outcome = match self.commit(Led { term, until }, entry).await {
                Ok(outcome) => outcome,
                Err(status) => {
                    count(&commands, Move::NotBegun);
                    return Err(status);
                }
            };
            for (command, outcome) in commands.iter().zip(each(&outcome)) {
                let begun = std::slice::from_ref(command);
                match outcome {
                    Ok(_) => {
                        rebalancer.begun(command);
                        count(begun, Move::Begun);
                    }
                    Err(refused) => {
                        // Its shards have changed since the picture.
                        tracing::debug!(%refused, "a transfer was not begun");
                        count(begun, Move::NotBegun);
                    }
                }
            }
        }
        Ok(())
    }
}

/// One result for each command.
fn each(outcome: &Result<Effect, Refused>) -> &[Result<Effect, Refused>] {
    match outcome {
        Ok(Effect::Batch(outcomes)) => outcomes,
        one => std::slice::from_ref(one),
    }
}
