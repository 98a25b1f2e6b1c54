//! What a session has to say: filled by anybody without waiting, emptied by the
//! transport as fast as the operator reads.
//!
//! The transport's own task is the writer: it asks [`Frames`] for the next frame
//! when there is room for it in the stream's window, so a frame that was handed
//! out is written, and no further task or channel stands between.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bigfleet_wire::v1alpha1::ShardMessage;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::lanes::{Lanes, Outgoing};

/// Why a frame was not queued.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The stream is over.
    Closed,
    /// Too many control frames wait.
    Full,
}

/// The frames of one stream that wait to be written, and its end.
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    /// Something waits where nothing did.
    filled: Notify,
    over: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    lanes: Lanes,
    /// Since when frames wait and none is taken.
    blocked_since: Option<Instant>,
    writer: Option<Waker>,
    end: Option<End>,
}

/// The last thing that the stream says.
enum End {
    Status(Status),
    Ok,
    Said,
}

impl Outbox {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            filled: Notify::new(),
            over: CancellationToken::new(),
        })
    }

    /// Queues a frame of the control lane.
    pub(super) fn push_control(&self, frame: impl Into<Outgoing>) -> Result<(), Refused> {
        self.fill(|lanes| lanes.push_control(frame.into()).map_err(|_| Refused::Full))
    }

    /// Queues the latest frame of a key; false if the stream is over.
    pub(super) fn put_state(&self, key: String, message: ShardMessage) -> bool {
        self.fill(|lanes| {
            lanes.put_state(key, message);
            Ok(())
        })
        .is_ok()
    }

    /// Queues a frame behind all state frames that wait.
    pub(super) fn push_marker(&self, message: ShardMessage) -> bool {
        self.fill(|lanes| {
            lanes.push_marker(message);
            Ok(())
        })
        .is_ok()
    }

    fn fill(&self, add: impl FnOnce(&mut Lanes) -> Result<(), Refused>) -> Result<(), Refused> {
        let mut waiting = self.lock();
        if waiting.end.is_some() {
            return Err(Refused::Closed);
        }
        add(&mut waiting.lanes)?;
        let first = waiting.blocked_since.is_none();
        if first {
            waiting.blocked_since = Some(Instant::now());
        }
        let writer = waiting.writer.take();
        drop(waiting);
        if let Some(writer) = writer {
            writer.wake();
        }
        if first {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes a request or an instruction back; false if it is written already.
    pub(super) fn take_back(&self, id: &str) -> bool {
        let mut waiting = self.lock();
        let taken = waiting.lanes.take_back(id);
        if waiting.lanes.is_empty() {
            waiting.blocked_since = None;
        }
        taken
    }

    /// How many frames wait.
    pub(super) fn depth(&self) -> usize {
        self.lock().lanes.len()
    }

    /// Ends the stream with a status, or well without one; what waits is dropped.
    /// The first end counts.
    pub(super) fn close(&self, status: Option<Status>) {
        let mut waiting = self.lock();
        if waiting.end.is_none() {
            waiting.end = Some(status.map_or(End::Ok, End::Status));
        }
        waiting.blocked_since = None;
        let dropped = mem::take(&mut waiting.lanes);
        let writer = waiting.writer.take();
        drop(waiting);
        drop(dropped);
        if let Some(writer) = writer {
            writer.wake();
        }
        self.over.cancel();
    }

    /// Returns when the stream is over.
    pub(super) async fn closed(&self) {
        self.over.cancelled().await;
    }

    /// Whether the stream is over.
    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Returns when frames have waited for so long and none was taken.
    pub(super) async fn stalled(&self, limit: Duration) {
        loop {
            let since = self.lock().blocked_since;
            match since {
                None => self.filled.notified().await,
                Some(since) if since + limit <= Instant::now() => return,
                Some(since) => sleep_until(since + limit).await,
            }
        }
    }

    /// What the transport reads. There is one reader per outbox.
    pub(super) fn frames(self: &Arc<Self>) -> Frames {
        Frames(self.clone())
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Option<Result<ShardMessage, Status>>> {
        let mut waiting = self.lock();
        if let Some(end) = &mut waiting.end {
            return Poll::Ready(match mem::replace(end, End::Said) {
                End::Status(status) => Some(Err(status)),
                End::Ok | End::Said => None,
            });
        }
        let Some(frame) = waiting.lanes.pop() else {
            if !waiting.writer.as_ref().is_some_and(|writer| writer.will_wake(context.waker())) {
                waiting.writer = Some(context.waker().clone());
            }
            return Poll::Pending;
        };
        let now = Instant::now();
        waiting.blocked_since = (!waiting.lanes.is_empty()).then_some(now);
        if let Some(progress) = frame.progress {
            // Under the lock, so that whoever fails to take it back finds it sent.
            progress.send_modify(|progress| progress.sent = Some(now));
        }
        Poll::Ready(Some(Ok(frame.message)))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The response stream of a session.
pub(crate) struct Frames(Arc<Outbox>);

impl Stream for Frames {
    type Item = Result<ShardMessage, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll(context)
    }
}

impl Drop for Frames {
    /// The transport has let go of the stream: nobody will read the rest.
    fn drop(&mut self) {
        self.0.close(Some(Status::cancelled("the stream was closed by the operator")));
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::{Acknowledgement, shard_message::Payload};
    use tokio::time::{advance, timeout};
    use tokio_stream::StreamExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn frame(echo: &str) -> ShardMessage {
        let ack = Acknowledgement { echo: echo.to_owned(), ..Default::default() };
        ShardMessage { payload: Some(Payload::Ack(ack)) }
    }

    async fn stalls_within(outbox: &Outbox, time: Duration) -> bool {
        timeout(time, outbox.stalled(LIMIT)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_stalls_after_its_time() {
        let outbox = Outbox::new();
        assert!(!stalls_within(&outbox, LIMIT * 100).await, "nothing waits");
        outbox.put_state("a".into(), frame("a"));
        assert!(!stalls_within(&outbox, LIMIT - Duration::from_secs(1)).await);
        assert!(stalls_within(&outbox, Duration::from_secs(1)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_does_not_stall() {
        let outbox = Outbox::new();
        let mut frames = outbox.frames();
        for number in 0..10 {
            outbox.push_control(frame(&number.to_string())).unwrap();
        }
        for _ in 0..9 {
            assert!(!stalls_within(&outbox, LIMIT - Duration::from_secs(1)).await);
            frames.next().await.unwrap().unwrap();
        }
        // The last one still waits, but only since the one before was taken.
        advance(LIMIT - Duration::from_secs(1)).await;
        frames.next().await.unwrap().unwrap();
        assert!(!stalls_within(&outbox, LIMIT * 100).await, "nothing waits");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_back_does_not_stall() {
        let outbox = Outbox::new();
        let request = bigfleet_wire::v1alpha1::BootstrapRequest {
            request_id: "r".to_owned(),
            ..Default::default()
        };
        let message = ShardMessage { payload: Some(Payload::BootstrapRequest(request)) };
        outbox.push_control(message).unwrap();
        assert!(outbox.take_back("r"));
        assert!(!stalls_within(&outbox, LIMIT * 100).await);
    }

    #[tokio::test]
    async fn the_first_end_is_said_once_and_nothing_after_it() {
        let outbox = Outbox::new();
        let mut frames = outbox.frames();
        outbox.push_control(frame("lost")).unwrap();
        outbox.close(Some(Status::aborted("first")));
        outbox.close(None);
        assert_eq!(outbox.push_control(frame("late")), Err(Refused::Closed));
        assert!(!outbox.put_state("a".into(), frame("late")));
        assert!(!outbox.push_marker(frame("late")));
        assert_eq!(outbox.depth(), 0);
        assert_eq!(frames.next().await.unwrap().unwrap_err().message(), "first");
        assert!(frames.next().await.is_none());
    }

    #[tokio::test]
    async fn a_stream_that_is_let_go_ends_the_session() {
        let outbox = Outbox::new();
        drop(outbox.frames());
        outbox.closed().await;
        assert!(outbox.is_closed());
    }

    #[tokio::test]
    async fn a_waiting_writer_is_woken() {
        let outbox = Outbox::new();
        let mut frames = outbox.frames();
        let reader = tokio::spawn(async move { frames.next().await });
        tokio::task::yield_now().await;
        outbox.put_state("a".into(), frame("a"));
        assert_eq!(reader.await.unwrap().unwrap().unwrap(), frame("a"));
    }
}
