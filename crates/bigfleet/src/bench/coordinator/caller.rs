//! Calls that go to whoever leads, as those of real clients do.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::time::sleep;
use tonic::{Code, Response, Status};

use super::replicas::{Client, Replicas, failed};
use crate::error::Error;

/// Calls that were sent elsewhere or could not be answered just then.
static TURNED_AWAY: AtomicU64 = AtomicU64::new(0);

/// A fleet that leads nobody for so long does not work.
const PATIENCE: Duration = Duration::from_secs(120);

/// One client with a connection to each replica. Clones share the connections.
#[derive(Clone)]
pub(super) struct Caller {
    clients: Vec<Client>,
    at: usize,
}

impl Caller {
    pub(super) fn new(replicas: &Replicas) -> Result<Self, Error> {
        Ok(Self { clients: replicas.clients()?, at: 0 })
    }

    /// Calls the last leader, and the others in turn until one answers.
    pub(super) async fn call<T, F>(&mut self, mut call: impl FnMut(Client) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let began = Instant::now();
        loop {
            match call(self.clients[self.at].clone()).await {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status)
                    if began.elapsed() < PATIENCE
                        && matches!(
                            status.code(),
                            Code::FailedPrecondition | Code::Unavailable
                        ) =>
                {
                    TURNED_AWAY.fetch_add(1, Ordering::Relaxed);
                    self.at = (self.at + 1) % self.clients.len();
                    if self.at == 0 {
                        sleep(Duration::from_millis(20)).await;
                    }
                }
                Err(status) => return Err(failed(&status)),
            }
        }
    }
}

/// How many calls were turned away since this was asked last.
pub(super) fn turned_away() -> u64 {
    TURNED_AWAY.swap(0, Ordering::Relaxed)
}
