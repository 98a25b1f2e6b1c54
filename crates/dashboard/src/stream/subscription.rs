//! One viewer's stream.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, stream};
use jiff::Timestamp;
use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

use super::{
    event::{Event, Kind, frame},
    hub::Subscriber,
};
use crate::auth::Viewer;

/// So that both ends notice when the other is gone.
const HEARTBEAT: Duration = Duration::from_secs(10);

struct Reading {
    subscriber: Subscriber,
    viewer: Viewer,
    boot: String,
    stop: bigfleet_net::shutdown::Shutdown,
    ready: VecDeque<Bytes>,
    heartbeat: Interval,
}

/// Frames for one viewer, of clusters that they may see, until their right or this process ends.
pub(crate) fn frames(
    subscriber: Subscriber,
    viewer: Viewer,
    hub: &super::Hub,
) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reading = Reading {
        subscriber,
        viewer,
        boot: hub.boot.clone(),
        stop: hub.stop.clone(),
        ready: VecDeque::new(),
        heartbeat,
    };
    reading.begin();
    stream::unfold(reading, |mut reading| async {
        let frame = reading.next().await?;
        Some((Ok(frame), reading))
    })
}

impl Reading {
    fn begin(&mut self) {
        // Proxies that wait for the first bytes get some.
        self.ready.push_back(heartbeat());
        if self.subscriber.missed {
            self.ready.push_back(reset("what you have seen is no longer known here"));
        }
        for event in std::mem::take(&mut self.subscriber.backlog) {
            self.take(&event);
        }
    }

    fn take(&mut self, event: &Event) {
        let wanted = self.subscriber.topics.contains(&event.topic);
        if !wanted || !self.viewer.sees(&event.cluster) {
            return;
        }
        let data = event.scoped.as_ref().filter(|_| self.viewer.is_scoped());
        let data = data.unwrap_or(&event.data);
        self.ready.push_back(match event.kind {
            Kind::News => {
                let id = format!("{}.{}", self.boot, event.number);
                frame(&event.topic.to_string(), Some(&id), data)
            }
            Kind::Source => frame("source", None, data),
        });
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let now = Timestamp::now().as_second();
            if self.viewer.until.is_some_and(|until| now >= until) {
                return None;
            }
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            tokio::select! {
                received = self.subscriber.receiver.recv() => match received {
                    Ok(event) => self.take(&event),
                    Err(RecvError::Lagged(_)) => {
                        self.ready.push_back(reset("you read too slowly"));
                    }
                    Err(RecvError::Closed) => return None,
                },
                _ = self.heartbeat.tick() => self.ready.push_back(heartbeat()),
                () = self.stop.requested() => return None,
            }
        }
    }
}

fn heartbeat() -> Bytes {
    let now = Timestamp::now().as_nanosecond();
    frame("heartbeat", None, format!("{{\"nowUnixNanos\":{now}}}").as_bytes())
}

fn reset(reason: &str) -> Bytes {
    frame("reset", None, format!("{{\"reason\":\"{reason}\"}}").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::Arc};

    use bigfleet_net::shutdown::Shutdown;
    use bigfleet_wire::v1alpha1::DecisionRecord;
    use futures_util::StreamExt as _;
    use prometheus_client::metrics::gauge::Gauge;

    use super::{
        super::{Hub, event::Topic, hub::QUEUE},
        *,
    };

    fn hub() -> Arc<Hub> {
        Arc::new(Hub::new("boot".to_owned(), Shutdown::new(), Gauge::default()))
    }

    /// What a viewer of decisions reads.
    fn read(hub: &Arc<Hub>, viewer: Viewer) -> impl Stream<Item = String> + use<> {
        let subscriber = hub.join(vec![Topic::Decisions], None).unwrap();
        let text = |frame: Result<Bytes, _>| {
            let Ok::<Bytes, Infallible>(frame) = frame;
            String::from_utf8(frame.to_vec()).unwrap()
        };
        frames(subscriber, viewer, hub).map(text)
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_too_slowly_is_told_that_something_is_missing() {
        let hub = hub();
        let mut slow = pin!(read(&hub, Viewer::default()));
        for sequence in 1..=QUEUE as i64 + 1 {
            hub.tell_decision("a", &DecisionRecord { sequence, ..DecisionRecord::default() });
        }
        assert!(slow.next().await.unwrap().starts_with("event: heartbeat\n"));
        let reset = slow.next().await.unwrap();
        assert!(reset.starts_with("event: reset\n") && !reset.contains("id: "), "{reset}");
        // And goes on with the oldest that is left.
        let next = slow.next().await.unwrap();
        assert!(next.contains(r#""sequence":"2""#), "{next}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_told_past_the_end_of_a_session() {
        let hub = hub();
        let now = Timestamp::now().as_second();
        for (until, told) in [(now + 3_600, true), (now, false)] {
            let mut frames = pin!(read(&hub, Viewer { until: Some(until), ..Viewer::default() }));
            hub.tell_decision("a", &DecisionRecord::default());
            assert_eq!(frames.next().await.is_some(), told);
        }
    }
}
