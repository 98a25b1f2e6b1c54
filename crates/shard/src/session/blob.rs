//! Bootstrap blobs: join credentials that an operator hands out one by one.

use std::{
    pin::Pin,
    sync::Weak,
    task::{Context, Poll, ready},
    time::Duration,
};

use bigfleet_provider::Secret;
use bigfleet_wire::v1alpha1 as wire;
use tokio::{sync::oneshot, time::Instant};

use super::{cut, link::Session};

/// Most of an operator's refusal that is kept, in bytes.
const MAX_REFUSAL: usize = 1024;

/// What a new node joins with.
#[derive(Debug)]
pub(crate) struct Blob {
    /// Goes unchanged into `bootstrap_blob`.
    pub(crate) data: Secret,
    /// How long after `received` it may still be used; none means without limit.
    pub(crate) ttl: Option<Duration>,
    /// When it came.
    pub(crate) received: Instant,
}

/// Why there is no blob. How long to wait is the caller's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlobError {
    /// No session, or it ended or was replaced before the answer.
    #[error("the cluster's operator has no session; it will connect again by itself")]
    NoSession,
    /// The operator's own words.
    #[error("the operator refused to give a bootstrap blob: {0}")]
    Refused(String),
}

pub(super) type Answer = Result<Blob, BlobError>;

/// What the operator's frame says. Takes the bytes over, so that they are zeroed
/// even if nobody asked for them.
pub(super) fn answer(response: wire::BootstrapBlobResponse) -> Answer {
    let data = Secret::from(response.user_data);
    if !response.error.is_empty() {
        return Err(BlobError::Refused(cut(response.error, MAX_REFUSAL)));
    }
    let ttl = u64::try_from(response.ttl_seconds).ok().filter(|seconds| *seconds > 0);
    Ok(Blob { data, ttl: ttl.map(Duration::from_secs), received: Instant::now() })
}

/// Resolves with the operator's answer, or as soon as its session is over.
/// Dropped, the request is forgotten and a late answer with it.
pub(crate) struct BlobWait {
    pub(super) id: String,
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) session: Weak<Session>,
}

impl Future for BlobWait {
    type Output = Result<Blob, BlobError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(context));
        Poll::Ready(answer.unwrap_or(Err(BlobError::NoSession)))
    }
}

impl Drop for BlobWait {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade() {
            session.outbox().take_back(&self.id);
            session.forget(&self.id);
        }
    }
}
