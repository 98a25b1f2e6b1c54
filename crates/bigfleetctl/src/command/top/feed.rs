//! Streams of a shard, as events; lost ones are made again.

use std::time::Duration;

use bigfleet_wire::v1alpha1::{WatchDecisionsRequest, WatchSummaryRequest};
use tokio::{sync::mpsc::Sender, time::sleep};
use tonic::Status;

use super::Event;
use crate::{kept, shards::Shard};

const AGAIN: Duration = Duration::from_secs(1);

/// A frame per cycle.
pub(super) async fn summaries(shard: Shard, events: Sender<Event>) {
    loop {
        let ended = summary_stream(&shard, &events).await;
        let why = ended.map_or_else(|status| status.message().to_owned(), |()| "ended".to_owned());
        if events.send(Event::Lost(shard.name.clone(), why)).await.is_err() {
            return;
        }
        sleep(AGAIN).await;
    }
}

async fn summary_stream(shard: &Shard, events: &Sender<Event>) -> Result<(), Status> {
    let mut rpc = shard.observe();
    let mut stream = rpc.watch_summary(WatchSummaryRequest {}).await?.into_inner();
    while let Some(summary) = stream.message().await? {
        let event = Event::Summary(shard.name.clone(), Box::new(summary));
        if events.send(event).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Decisions as they are made.
pub(super) async fn decisions(shard: Shard, events: Sender<Event>) {
    let mut last = 0;
    while !events.is_closed() {
        // What is wrong with the shard is told by its other stream.
        let _ = decision_stream(&shard, &events, &mut last).await;
        sleep(AGAIN).await;
    }
}

async fn decision_stream(
    shard: &Shard,
    events: &Sender<Event>,
    last: &mut i64,
) -> Result<(), Status> {
    if *last == 0 {
        // From here on, so that nothing is missed if the stream breaks before its first record.
        *last = kept::head(shard).await?;
    }
    let mut rpc = shard.observe();
    let request = WatchDecisionsRequest { after_sequence: *last, ..Default::default() };
    let mut stream = rpc.watch_decisions(request).await?.into_inner();
    while let Some(record) = stream.message().await? {
        *last = record.sequence;
        let event = Event::Decision(shard.name.clone(), Box::new(record));
        if events.send(event).await.is_err() {
            break;
        }
    }
    Ok(())
}
