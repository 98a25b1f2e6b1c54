use std::{future::Future, time::Duration};

use kube::Client;

use crate::{
    budget::{Budget, Lane},
    refusal,
};

/// How long one call may take. The server gives up after a minute by itself.
const CALL_WITHIN: Duration = Duration::from_secs(30);

/// A client whose calls wait for their turn. Clones share one budget.
#[derive(Clone)]
pub struct Paced {
    client: Client,
    budget: Budget,
}

/// A call that was cut off; inside [`kube::Error::Service`].
#[derive(Debug, thiserror::Error)]
#[error("no answer from the API server within {}s", .0.as_secs())]
pub struct CutOff(Duration);

impl Paced {
    /// Lets the client's calls share a budget.
    #[must_use]
    pub fn new(client: Client, budget: Budget) -> Self {
        Self { client, budget }
    }

    /// The client itself, for watches and lists.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The budget, to be shared with others.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Makes one call when its lane has a turn, and gives it up after 30 s.
    ///
    /// An answer that names a time to stay away pauses every lane of the budget but the lease's.
    /// The call itself is not repeated.
    pub async fn call<T, F, Fut>(&self, lane: Lane, call: F) -> Result<T, kube::Error>
    where
        F: FnOnce(Client) -> Fut,
        Fut: Future<Output = Result<T, kube::Error>>,
    {
        self.budget.turn(lane).await;
        let answer = tokio::time::timeout(CALL_WITHIN, call(self.client.clone())).await;
        let answer =
            answer.unwrap_or_else(|_| Err(kube::Error::Service(CutOff(CALL_WITHIN).into())));
        if let Some(pause) = answer.as_ref().err().and_then(refusal::retry_after) {
            self.budget.pause(pause);
        }
        answer
    }
}

impl std::fmt::Debug for Paced {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Paced").field("budget", &self.budget).finish_non_exhaustive()
    }
}
