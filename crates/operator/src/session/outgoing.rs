//! What waits to be sent: one roll-up, and a bounded queue of answers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bigfleet_wire::v1alpha1::{
    BootstrapBlobResponse, Hello, OperatorMessage, ReclaimAck, operator_message::Payload,
};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;

use crate::rollup::{Candidate, RollUp};

/// Answers that may wait. When more come the newest is dropped: the shard has its own
/// timeouts, and a late answer is worth nothing.
pub const OUTBOX: usize = 256;

/// A roll-up with the requests that its acceptance acknowledges.
#[derive(Clone, Debug)]
pub struct Demand {
    /// The frame.
    pub roll_up: RollUp,
    /// The requests in it that wait.
    pub candidates: Arc<[Candidate]>,
}

/// One frame on its way out.
#[derive(Clone, Debug)]
pub enum Frame {
    /// Anything small.
    Message(OperatorMessage),
    /// Demand.
    RollUp(Demand),
}

/// The sending half of one session.
#[derive(Debug)]
pub(super) struct Outgoing {
    queues: Mutex<Queues>,
    changed: Notify,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Queues {
    /// To be said before anything else.
    hello: Option<Hello>,
    /// The newest replaces an older one that has not been sent.
    roll_up: Option<Demand>,
    outbox: VecDeque<OperatorMessage>,
    closed: bool,
}

impl Outgoing {
    /// Begins with a greeting.
    pub(super) fn new(hello: Hello, dropped: Counter) -> Self {
        let queues = Queues { hello: Some(hello), ..Queues::default() };
        Self { queues: Mutex::new(queues), changed: Notify::new(), dropped }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // Every change is complete, so a poisoned lock guards good data.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Greets again; of several that wait one is said.
    pub(super) fn hello(&self, hello: Hello) {
        self.queues().hello = Some(hello);
        self.changed.notify_one();
    }

    /// Puts a roll-up into the slot.
    pub(super) fn roll_up(&self, demand: Demand) {
        self.queues().roll_up = Some(demand);
        self.changed.notify_one();
    }

    /// Queues an answer, unless too many wait.
    pub(super) fn answer(&self, payload: Payload) -> bool {
        let queued = {
            let mut queues = self.queues();
            let fits = queues.outbox.len() < OUTBOX && !queues.closed;
            if fits {
                queues.outbox.push_back(OperatorMessage { payload: Some(payload) });
            }
            fits
        };
        if queued {
            self.changed.notify_one();
        } else {
            self.dropped.inc();
        }
        queued
    }

    pub(super) fn bootstrap(&self, response: BootstrapBlobResponse) -> bool {
        self.answer(Payload::BootstrapResponse(response))
    }

    /// Ends the sending half, for an orderly stop.
    pub(super) fn close(&self) {
        self.queues().closed = true;
        self.changed.notify_one();
    }

    /// The next frame; none when closed.
    pub(super) async fn next(&self) -> Option<Frame> {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    /// The next frame if there is one; `Some(None)` at the end.
    fn take(&self) -> Option<Option<Frame>> {
        let mut queues = self.queues();
        if queues.closed {
            return Some(None);
        }
        let message = |payload| Frame::Message(OperatorMessage { payload: Some(payload) });
        if let Some(hello) = queues.hello.take() {
            return Some(Some(message(Payload::Hello(hello))));
        }
        if let Some(demand) = queues.roll_up.take() {
            return Some(Some(Frame::RollUp(demand)));
        }
        queues.outbox.pop_front().map(|answer| Some(Frame::Message(answer)))
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.queues().outbox.len()
    }
}

/// Takes the reclaim acks of one session; of none once it has ended.
#[derive(Clone, Debug)]
pub struct ReclaimAcks(Weak<Outgoing>);

impl ReclaimAcks {
    pub(super) fn of(outgoing: &Arc<Outgoing>) -> Self {
        Self(Arc::downgrade(outgoing))
    }

    /// Of no session.
    #[must_use]
    pub const fn nowhere() -> Self {
        Self(Weak::new())
    }

    /// Whether the ack waits to be sent: not if the outbox is full or the session over.
    pub fn send(&self, ack: ReclaimAck) -> bool {
        self.0.upgrade().is_some_and(|outgoing| outgoing.answer(Payload::ReclaimAck(ack)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::rollup::Fold;

    fn outgoing() -> Arc<Outgoing> {
        Arc::new(Outgoing::new(Hello::default(), Counter::default()))
    }

    fn demand(timestamp: i64) -> Demand {
        Demand { roll_up: Fold::new("c").build(timestamp), candidates: Arc::new([]) }
    }

    fn next(outgoing: &Outgoing) -> Option<String> {
        let frame = outgoing.next().now_or_never()??;
        Some(match frame {
            Frame::RollUp(demand) => format!("rollup {}", demand.roll_up.timestamp()),
            Frame::Message(message) => match message.payload.unwrap() {
                Payload::Hello(_) => "hello".to_owned(),
                Payload::ReclaimAck(ack) => format!("ack {}", ack.instruction_id),
                Payload::BootstrapResponse(blob) => format!("blob {}", blob.request_id),
                Payload::Rollup(_) => "a roll-up of another kind".to_owned(),
            },
        })
    }

    fn ack(id: usize) -> ReclaimAck {
        ReclaimAck { instruction_id: id.to_string(), ..Default::default() }
    }

    #[test]
    fn operator_inv_05_the_newest_roll_up_replaces_the_unsent_and_goes_before_answers() {
        let outgoing = outgoing();
        let acks = ReclaimAcks::of(&outgoing);
        assert!(acks.send(ack(1)) && acks.send(ack(2)));
        outgoing.roll_up(demand(1));
        outgoing.roll_up(demand(2));
        assert_eq!(next(&outgoing).as_deref(), Some("hello"));
        outgoing.roll_up(demand(3));
        assert_eq!(next(&outgoing).as_deref(), Some("rollup 3"));
        assert_eq!(next(&outgoing).as_deref(), Some("ack 1"));
        outgoing.roll_up(demand(4));
        assert_eq!(next(&outgoing).as_deref(), Some("rollup 4"));
        assert_eq!(next(&outgoing).as_deref(), Some("ack 2"));
        assert_eq!(next(&outgoing), None);
    }

    #[test]
    fn operator_inv_09_the_outbox_is_bounded_and_drops_the_newest() {
        let outgoing = outgoing();
        let acks = ReclaimAcks::of(&outgoing);
        let sent = (0..1_000_000).filter(|id| acks.send(ack(*id))).count();
        assert_eq!((sent, outgoing.waiting()), (OUTBOX, OUTBOX));
        assert_eq!(outgoing.dropped.get(), 1_000_000 - OUTBOX as u64);
        next(&outgoing);
        assert_eq!(next(&outgoing).as_deref(), Some("ack 0"), "the oldest stays");
        assert!(acks.send(ack(7)), "there is room again");
    }

    #[test]
    fn nothing_is_sent_after_the_end() {
        let outgoing = outgoing();
        let acks = ReclaimAcks::of(&outgoing);
        outgoing.close();
        assert!(!acks.send(ack(1)));
        assert!(matches!(outgoing.next().now_or_never(), Some(None)));
        drop(outgoing);
        assert!(!acks.send(ack(1)) && !ReclaimAcks::nowhere().send(ack(1)));
    }
}
