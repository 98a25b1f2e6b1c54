//! One question to one replica.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status, transport::Channel};

use super::{LEADER_ADDR, queue::Target};

/// One replica, and how long it may take.
#[derive(Debug)]
pub struct Attempt {
    pub(super) target: Target,
    /// The way to it.
    pub channel: Channel,
    /// Its share of the time.
    pub within: Duration,
}

impl Attempt {
    /// What the replica is called, for whoever reads about it.
    #[must_use]
    pub fn addr(&self) -> String {
        self.target.to_string()
    }

    /// This message as a request that tells the replica its time.
    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(self.within);
        request
    }

    /// The answer of such a request; one that comes too late is dropped unread.
    pub async fn in_time<R>(
        &self,
        called: impl Future<Output = Result<Response<R>, Status>>,
    ) -> Result<R, Status> {
        let late = |_| Err(Status::deadline_exceeded("no answer in time"));
        let answered = timeout_at(Instant::now() + self.within, called).await;
        answered.unwrap_or_else(late).map(Response::into_inner)
    }
}

/// What to do when a replica's answer was not the one wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Ask the next.
    Next,
    /// Ask this address next: the replica says that it leads.
    Named(String),
    /// Nobody else would answer otherwise.
    Stop,
}

impl Turn {
    /// After a refusal by one that does not lead: to whom it names, if it does.
    #[must_use]
    pub fn after(not_leader: &Status) -> Self {
        let hint = not_leader.metadata().get(LEADER_ADDR).and_then(|addr| addr.to_str().ok());
        hint.map_or(Self::Next, |addr| Self::Named(addr.to_owned()))
    }
}
