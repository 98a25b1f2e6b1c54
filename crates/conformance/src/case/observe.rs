//! Watching a machine while something happens to it.

use std::time::Duration;

use tokio::{
    select,
    time::{Instant, sleep},
};

use super::{Case, Listing, Machine, SETTLE, State};
use crate::{ensure, outcome::Outcome, wire::state_name};

/// How often a watched machine is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// How long a repair may be outstanding at most.
const CALM: Duration = Duration::from_secs(30);

/// What was seen of a machine, in order; equal looks in a row are one.
#[derive(Debug, Clone, Default)]
pub struct Seen(pub Vec<Machine>);

impl Seen {
    fn add(&mut self, machine: Machine) {
        if self.0.last() != Some(&machine) {
            self.0.push(machine);
        }
    }

    /// The states in order, repeats left out.
    #[must_use]
    pub fn states(&self) -> Vec<State> {
        let mut states: Vec<_> = self.0.iter().map(Machine::state).collect();
        states.dedup();
        states
    }

    /// Only these states may have been seen.
    pub fn only(&self, allowed: &[State]) -> Outcome {
        for seen in &self.0 {
            ensure!(
                allowed.contains(&seen.state()),
                "{:?} was seen in {}; it passed {:?}",
                seen.id,
                state_name(seen.state),
                self.states()
            );
        }
        Ok(())
    }

    /// The looks in this state.
    pub fn during(&self, state: State) -> impl Iterator<Item = &Machine> {
        self.0.iter().filter(move |machine| machine.state() == state)
    }
}

impl Case {
    /// Looks at the machine from before `call` until it rests in `target` (or
    /// FAILED) after it, or the time to settle is over.
    pub async fn observe<T>(
        &self,
        machine: &str,
        target: State,
        call: impl Future<Output = Outcome<T>>,
    ) -> Outcome<(T, Seen)> {
        let mut seen = Seen::default();
        seen.add(self.get(machine).await?);
        let mut answer = None;
        let deadline = Instant::now() + self.time(SETTLE * 2);
        let mut call = Box::pin(call);
        loop {
            select! {
                biased;
                done = &mut call, if answer.is_none() => answer = Some(done?),
                look = self.get(machine) => {
                    let look = look?;
                    let state = look.state();
                    seen.add(look);
                    let resting = state == target || state == State::Failed;
                    let over = resting || Instant::now() > deadline;
                    match answer.take() {
                        Some(answer) if over => {
                            ensure!(
                                state == target,
                                "{machine:?} must become {}, but is {}; it passed {:?}",
                                state_name(target.into()),
                                state_name(state.into()),
                                seen.states()
                            );
                            return Ok((answer, seen));
                        }
                        other => answer = other,
                    }
                    if answer.is_some() {
                        sleep(LOOK).await;
                    }
                }
            }
        }
    }

    /// Looks at the machine for so long.
    pub async fn watch(&self, machine: &str, time: Duration) -> Outcome<Seen> {
        let mut seen = Seen::default();
        let end = Instant::now() + time;
        loop {
            seen.add(self.get(machine).await?);
            if Instant::now() >= end {
                return Ok(seen);
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until what other tests left behind has come to rest: a target that
    /// repairs FAILED machines does so long after the test that broke them.
    pub async fn calm(&self) -> Outcome {
        if !self.gates().flt {
            return Ok(());
        }
        let deadline = Instant::now() + self.time(CALM);
        let mut before = Vec::new();
        loop {
            let list = self.list(Listing::default()).await?;
            let failed = list.machines.iter().any(|machine| machine.state() == State::Failed);
            if (!failed && list.revision == before) || Instant::now() > deadline {
                return Ok(());
            }
            before = list.revision;
            sleep(CALM / 25).await;
        }
    }
}
