//! The fleet as it moves: server-sent events.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use serde_json::json;
use tokio::{
    sync::{OwnedSemaphorePermit, broadcast},
    time::{Interval, MissedTickBehavior, interval},
};

use super::{Guide, STREAMS, refuse};
use crate::{
    eyes::Decision,
    state::{self, Told},
};

/// Between two pictures.
const PACE: Duration = Duration::from_millis(500);
/// Between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(10);

struct Feed {
    guide: Arc<Guide>,
    ticks: Interval,
    news: broadcast::Receiver<Decision>,
    fresh: Vec<Told>,
    _permit: OwnedSemaphorePermit,
}

pub(super) async fn open(State(guide): State<Arc<Guide>>) -> Response {
    let Ok(permit) = guide.streams.clone().try_acquire_owned() else {
        let text = format!("{STREAMS} pages are open already; close one");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, &text);
    };
    let mut ticks = interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let news = guide.show.fleet.eyes.news();
    let feed = Feed { guide, ticks, news, fresh: Vec::new(), _permit: permit };
    let events = stream::unfold(feed, async |mut feed| {
        let event = feed.next().await?;
        Some((Ok::<_, Infallible>(event), feed))
    });
    let beat = KeepAlive::new().interval(HEARTBEAT).text("heartbeat");
    Sse::new(events).keep_alive(beat).into_response()
}

impl Feed {
    /// The next event: what was decided since the last picture, else a picture.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if !self.fresh.is_empty() && self.news.is_empty() {
                let decisions = json!({"decisions": std::mem::take(&mut self.fresh)});
                return Some(Event::default().event("decisions").data(decisions.to_string()));
            }
            tokio::select! {
                () = self.guide.stop.requested() => return None,
                decision = self.news.recv() => match decision {
                    Ok(decision) => self.fresh.push(Told::of(&decision)),
                    // What is left are more than a page shows, and newer.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                _ = self.ticks.tick() => {
                    let sequence = self.guide.next();
                    let around = self.guide.around();
                    let state = state::state(&self.guide.show, sequence, &around);
                    let event = Event::default().event("state").id(sequence.to_string());
                    return Some(event.data(state.to_string()));
                }
            }
        }
    }
}
