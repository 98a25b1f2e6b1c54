//! The needs of a shard, of one cluster or of all.
//!
//! A notice makes everybody ask at once, and those who may see one cluster each ask something else:
//! they take turns, for a shard refuses readers beyond a few.

use std::time::Duration;

use bigfleet_wire::v1alpha1::{
    InspectNeedsRequest, InspectNeedsResponse, inspect_needs_response::Frame,
};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::{Code, Request, Streaming};

use super::shards::Shard;
use crate::{
    api::{Refusal, Source},
    view::need::{Rows, RowsWriter},
};

/// Time for all needs of a shard, with the wait for a turn.
const WITHIN: Duration = Duration::from_secs(10);

/// What is read keeps its own time; this only guards it.
pub(super) const AT_MOST: Duration = Duration::from_secs(WITHIN.as_secs() + 1);

/// Time until a shard that has no place is asked again, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// All rows of an answer, turned into JSON as they arrive.
pub(super) async fn read(shard: Shard, request: InspectNeedsRequest) -> Result<Rows, Refusal> {
    let deadline = Instant::now() + WITHIN;
    let busy = |_| Refusal::failed(Source::Shard, format!("{}: too many read its needs", shard.id));
    let _place = timeout_at(deadline, shard.places.needs.acquire()).await.map_err(busy)?;
    let reading = async {
        let mut frames = admitted(&shard, request, deadline).await?;
        rows(&shard, &mut frames).await
    };
    timeout_at(deadline, reading).await.unwrap_or_else(|_| Err(shard.late()))
}

/// An answer that begins. Who else reads, other dashboards among them, leaves soon.
async fn admitted(
    shard: &Shard,
    request: InspectNeedsRequest,
    deadline: Instant,
) -> Result<Streaming<InspectNeedsResponse>, Refusal> {
    let mut wait = AGAIN.0;
    loop {
        let mut asked = Request::new(request.clone());
        asked.set_timeout(deadline.saturating_duration_since(Instant::now()));
        match shard.read().inspect_needs(asked).await {
            Ok(answer) => return Ok(answer.into_inner()),
            // Said in its own words when there is no time for another attempt.
            Err(status)
                if status.code() == Code::ResourceExhausted && Instant::now() + wait < deadline =>
            {
                sleep(wait).await;
                wait = (wait * 2).min(AGAIN.1);
            }
            Err(status) => return Err(shard.refused(&status)),
        }
    }
}

async fn rows(
    shard: &Shard,
    frames: &mut Streaming<InspectNeedsResponse>,
) -> Result<Rows, Refusal> {
    let failed = |problem: &str| Refusal::failed(Source::Shard, format!("{}: {problem}", shard.id));
    let first = frames.message().await.map_err(|status| shard.refused(&status))?;
    let Some(Frame::Header(header)) = first.and_then(|first| first.frame) else {
        return Err(failed("its answer does not begin with a header"));
    };
    let mut rows = RowsWriter::new(header);
    while let Some(frame) = frames.message().await.map_err(|status| shard.refused(&status))? {
        if let Some(Frame::Need(need)) = &frame.frame {
            rows.push(need).map_err(|error| failed(&error.to_string()))?;
        }
    }
    Ok(rows.finish())
}
