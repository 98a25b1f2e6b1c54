//! "walk" = Create[/Configure] and wait.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep};

use super::{Ack, Binding, Case, Machine, SETTLE, State};
use crate::{ensure, fail, outcome::Outcome, wire::state_name};

impl Case {
    /// Waits until the machine is in this state; FAILED ends the wait.
    pub async fn settle(&self, machine: &str, state: State) -> Outcome<Machine> {
        self.settle_within(machine, state, SETTLE).await
    }

    /// The same with another bound.
    pub async fn settle_within(
        &self,
        machine: &str,
        state: State,
        bound: Duration,
    ) -> Outcome<Machine> {
        let seen = self
            .until(machine, bound, |seen| seen.state() == state || seen.state() == State::Failed);
        let (seen, took) = seen.await?;
        ensure!(
            seen.state() == state,
            "{machine:?} must become {}, but is {} after {took:.1?} {}",
            state_name(state.into()),
            state_name(seen.state),
            seen.last_error
        );
        Ok(seen)
    }

    /// Polls until the machine is as wanted or the time is over; the last look.
    pub async fn until(
        &self,
        machine: &str,
        bound: Duration,
        wanted: impl Fn(&Machine) -> bool,
    ) -> Outcome<(Machine, Duration)> {
        let begun = Instant::now();
        let bound = self.time(bound);
        let mut pause = Duration::from_millis(5);
        loop {
            let seen = self.get(machine).await?;
            let took = begun.elapsed();
            if wanted(&seen) || took >= bound {
                return Ok((seen, took));
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// Waits until the machine is FAILED and says why.
    pub async fn fails(&self, machine: &str, bound: Duration) -> Outcome<Machine> {
        let (seen, took) = self.until(machine, bound, |seen| seen.state() == State::Failed).await?;
        ensure!(
            seen.state() == State::Failed,
            "{machine:?} must become FAILED, but is {} after {took:.1?}",
            state_name(seen.state)
        );
        ensure!(!seen.last_error.is_empty(), "{machine:?} is FAILED without last_error");
        Ok(seen)
    }

    /// A machine at rest in I.
    pub async fn idle(&self) -> Outcome<String> {
        Ok(self.idles(1).await?.remove(0))
    }

    /// So many machines at rest in I.
    pub async fn idles(&self, count: usize) -> Outcome<Vec<String>> {
        let machines = self.starts(count).await?;
        if self.gates().slot {
            try_join_all(machines.iter().map(|machine| self.create_and_wait(machine))).await?;
        }
        Ok(machines)
    }

    /// Create and wait for I.
    pub async fn create_and_wait(&self, machine: &str) -> Outcome<Ack> {
        let ack = self.create(machine).await.accepted()?;
        self.settle(machine, State::Idle).await?;
        Ok(ack)
    }

    /// Configure and wait for C.
    pub async fn configure_and_wait(&self, machine: &str, binding: Binding) -> Outcome<Ack> {
        let ack = self.configure(machine, binding).await.accepted()?;
        self.settle(machine, State::Configured).await?;
        Ok(ack)
    }

    /// Drain and wait for I.
    pub async fn drain_and_wait(&self, machine: &str, grace: i64) -> Outcome<Ack> {
        let ack = self.drain(machine, grace).await.accepted()?;
        self.settle_within(machine, State::Idle, SETTLE * 2).await?;
        Ok(ack)
    }

    /// A machine bound to a cluster of this test.
    pub async fn configured(&self) -> Outcome<String> {
        self.configured_to(Binding::to(self.cluster("a"))).await
    }

    /// A machine bound like this.
    pub async fn configured_to(&self, binding: Binding) -> Outcome<String> {
        let machine = self.idle().await?;
        self.configure_and_wait(&machine, binding).await?;
        Ok(machine)
    }

    /// Drained machines are clean: no cluster, no metadata, no error.
    pub async fn clean_idle(&self, machine: &str) -> Outcome<Machine> {
        let seen = self.get(machine).await?;
        ensure!(seen.state() == State::Idle, "{machine:?} is {}", state_name(seen.state));
        ensure!(seen.cluster.is_empty(), "{machine:?} in I still has cluster {:?}", seen.cluster);
        ensure!(
            seen.shard_metadata.is_empty(),
            "{machine:?} in I still has {} metadata keys",
            seen.shard_metadata.len()
        );
        ensure!(seen.last_error.is_empty(), "{machine:?} in I has error {:?}", seen.last_error);
        Ok(seen)
    }

    /// The machine must be in this state now.
    pub async fn is_in(&self, machine: &str, state: State) -> Outcome<Machine> {
        let seen = self.get(machine).await?;
        if seen.state() != state {
            fail!(
                "{machine:?} must be {}, not {}",
                state_name(state.into()),
                state_name(seen.state)
            );
        }
        Ok(seen)
    }
}
