//! How many may read at once, and how a stream to a reader ends. Nobody is
//! buffered for: who cannot keep up is told to come back.

use std::sync::Arc;

use bigfleet_net::peer::Peer;
use futures_util::stream::{self, BoxStream, StreamExt};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use crate::metrics::{Metrics, WatchMethod};

/// Readers of needs at once.
const INSPECTING: usize = 8;
/// Watch streams at once.
const WATCHING: usize = 256;

/// A stream to a reader.
pub(crate) type Answers<T> = BoxStream<'static, Result<T, Status>>;

/// Places for readers.
pub(crate) struct Readers {
    metrics: Arc<Metrics>,
    inspecting: Arc<Semaphore>,
    watching: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            inspecting: Arc::new(Semaphore::new(INSPECTING)),
            watching: Arc::new(Semaphore::new(WATCHING)),
        }
    }

    /// A place, or at once the refusal.
    pub(crate) fn admit<T>(
        &self,
        method: WatchMethod,
        request: &Request<T>,
    ) -> Result<Place, Status> {
        let (places, most) = match method {
            WatchMethod::InspectNeeds => (&self.inspecting, INSPECTING),
            WatchMethod::WatchSummary | WatchMethod::WatchDecisions => (&self.watching, WATCHING),
        };
        let permit = places.clone().try_acquire_owned().map_err(|_| {
            Status::resource_exhausted(format!("{most} readers are here already; try again later"))
        })?;
        let closing = Peer::of(request).map(|peer| peer.closing().clone()).unwrap_or_default();
        let watchers = self.metrics.watchers(method);
        watchers.inc();
        Ok(Place { metrics: self.metrics.clone(), method, watchers, closing, _permit: permit })
    }
}

/// One reader's place, for as long as its stream is there.
pub(crate) struct Place {
    metrics: Arc<Metrics>,
    method: WatchMethod,
    watchers: Gauge,
    closing: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.watchers.dec();
    }
}

impl Place {
    /// The reader is too slow.
    pub(crate) fn too_slow(&self, why: impl Into<String>) -> Status {
        self.metrics.watcher_dropped(self.method);
        Status::resource_exhausted(why)
    }

    /// Streams what the source has until it ends, fails, or the connection closes.
    pub(crate) fn serve<S: Source>(self, source: S) -> Answers<S::Item> {
        let next = |state: Option<(Self, S)>| async move {
            let (place, mut source) = state?;
            let closing = place.closing.clone();
            let item = tokio::select! {
                biased;
                () = closing.cancelled() => {
                    Some(Err(Status::unavailable("this connection is closing; connect again")))
                }
                item = source.next(&place) => item,
            };
            let item = item?;
            let state = item.is_ok().then_some((place, source));
            Some((item, state))
        };
        stream::unfold(Some((self, source)), next).boxed()
    }
}

/// Where a stream's items come from.
pub(crate) trait Source: Send + 'static {
    /// One frame.
    type Item: Send + 'static;

    /// The next frame, or the end.
    fn next(
        &mut self,
        place: &Place,
    ) -> impl Future<Output = Option<Result<Self::Item, Status>>> + Send;
}
