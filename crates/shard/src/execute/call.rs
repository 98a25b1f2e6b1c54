//! One mutation at the provider, with the proof that a refusal for an old token
//! asks for (§11).

use std::time::Duration;

use bigfleet_model::MachineId;
use bigfleet_provider::{Ack, Configure, Error};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::limit::Permit;
use crate::{outcome::Outcome, shard::Shard};

/// A mutation.
#[derive(Clone)]
pub(super) enum Mutation {
    Create,
    Configure(Configure),
    Drain(Duration),
    Delete,
}

/// A mutation that came to nothing, as far as we know.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) outcome: Outcome,
    pub(super) error: String,
    /// When it was sent; none if the provider was never asked.
    pub(super) sent: Option<Instant>,
    /// Nobody answered: it may have happened, or may yet.
    pub(super) unanswered: bool,
    /// The provider has no such call.
    pub(super) unsupported: bool,
}

impl Failed {
    /// Held back before it was sent.
    fn unsent(outcome: Outcome, error: &str) -> Self {
        let error = error.to_owned();
        Self { outcome, error, sent: None, unanswered: false, unsupported: false }
    }

    fn of(error: &Error, sent: Instant) -> Self {
        let outcome = match error {
            Error::Fenced(_) => Outcome::Fenced,
            Error::DeadlineExceeded(_) | Error::Cancelled(_) => Outcome::CtxCanceled,
            _ => Outcome::ProviderError,
        };
        Self {
            outcome,
            error: error.to_string(),
            sent: Some(sent),
            unanswered: error.is_unanswered(),
            unsupported: matches!(error, Error::NotSupported(_)),
        }
    }
}

impl Shard {
    /// Waits for a place at the provider, then sends a mutation.
    pub(super) async fn mutate(
        &self,
        machine: &MachineId,
        mutation: Mutation,
    ) -> Result<Ack, Failed> {
        let permit = self.limit.acquire().await;
        self.mutate_now(&permit, machine, mutation).await
    }

    /// Sends a mutation, once; twice if the first was refused for its token.
    pub(super) async fn mutate_now(
        &self,
        _permit: &Permit<'_>,
        machine: &MachineId,
        mutation: Mutation,
    ) -> Result<Ack, Failed> {
        self.check_may_act()?;
        let (sent, answer) = self.attempt(machine, mutation.clone()).await;
        let error = match answer {
            Ok(ack) => return Ok(ack),
            Err(Error::Fenced(text)) => text,
            Err(error) => return Err(Failed::of(&error, sent)),
        };
        tracing::error!(%machine, error, "refused as a zombie: trying once more to prove it");
        self.check_may_act()?;
        let (sent, answer) = self.attempt(machine, mutation).await;
        match answer {
            Err(Error::Fenced(text)) => {
                self.latch(&format!("the provider refused machine {machine} twice: {text}")).await;
                Err(Failed::of(&Error::Fenced(text), sent))
            }
            Err(error) => Err(Failed::of(&error, sent)),
            Ok(ack) => {
                self.fence.false_alarm();
                Ok(ack)
            }
        }
    }

    async fn attempt(
        &self,
        machine: &MachineId,
        mutation: Mutation,
    ) -> (Instant, Result<Ack, Error>) {
        let sent = Instant::now();
        let deadline = sent + self.options.execute_timeout;
        let supply = &*self.supply;
        let call: BoxFuture<'_, Result<Ack, Error>> = match mutation {
            Mutation::Create => supply.create(machine, deadline),
            Mutation::Configure(request) => supply.configure(machine, request, deadline),
            Mutation::Drain(grace) => supply.drain(machine, grace, deadline),
            Mutation::Delete => supply.delete(machine, deadline),
        };
        let late = || Error::DeadlineExceeded("no answer from the provider in time".to_owned());
        let answer = timeout_at(deadline, call).await.unwrap_or_else(|_| Err(late()));
        if matches!(answer, Err(Error::Exhausted(_) | Error::Unavailable(_))) {
            self.limit.overloaded();
        }
        (sent, answer)
    }

    /// Whether anything may be sent now: neither fenced nor braked.
    pub(super) fn check_may_act(&self) -> Result<(), Failed> {
        if self.fence.is_latched() {
            return Err(Failed::unsent(Outcome::Fenced, "fenced: nothing is sent"));
        }
        if !self.may_act() {
            return Err(Failed::unsent(Outcome::CtxCanceled, "actuation was stopped meanwhile"));
        }
        Ok(())
    }
}
