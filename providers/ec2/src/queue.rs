//! Events that the cloud tells by itself: interruptions, and ends of instances.

use std::{sync::Arc, time::Duration};

use bigfleet_provider_kit::{Handle, Notice};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::json::JsonService;

/// How long one question waits for an event.
const WAIT_SECONDS: u64 = 10;
const LIMIT: Duration = Duration::from_secs(WAIT_SECONDS + 15);
const AFTER_TROUBLE: Duration = Duration::from_secs(5);

/// What an event says.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Notice(String, Notice),
    Changed,
    Other,
}

/// Who an instance is.
pub trait Names: Send + Sync + 'static {
    /// The machine of this instance, if it is ours.
    fn machine(&self, instance: &str) -> impl Future<Output = Option<String>> + Send;
}

/// A queue: its service, and its name there.
#[derive(Debug)]
pub struct Queue {
    /// Who keeps it.
    pub service: JsonService,
    /// Which one.
    pub url: String,
}

/// Takes events for ever.
pub async fn listen(queue: Queue, names: Arc<impl Names>, handle: Handle) {
    let question = json!({
        "QueueUrl": queue.url,
        "MaxNumberOfMessages": 10,
        "WaitTimeSeconds": WAIT_SECONDS,
    });
    loop {
        let answer = match queue.service.call_within("ReceiveMessage", &question, LIMIT).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "no events: interruptions are noticed by sweeps alone");
                sleep(AFTER_TROUBLE).await;
                continue;
            }
        };
        let messages = answer.get("Messages").and_then(Value::as_array);
        for message in messages.into_iter().flatten() {
            take(&queue, message, &*names, &handle).await;
        }
    }
}

async fn take(queue: &Queue, message: &Value, names: &impl Names, handle: &Handle) {
    let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
    match read(text("Body")) {
        Event::Notice(instance, notice) => match names.machine(&instance).await {
            Some(machine) => handle.notice(&machine, notice),
            None => tracing::debug!(instance, "an event about an instance that is not ours"),
        },
        Event::Changed => handle.sweep(),
        Event::Other => {}
    }
    // Told first, removed then: an event that is told twice does no harm.
    let body = json!({"QueueUrl": queue.url, "ReceiptHandle": text("ReceiptHandle")});
    if let Err(error) = queue.service.call("DeleteMessage", &body).await {
        tracing::warn!(%error, "an event will be told again");
    }
}

fn read(body: &str) -> Event {
    let event: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let instance = || text(event.get("detail").and_then(|detail| detail.get("instance-id")));
    match event.get("detail-type").and_then(Value::as_str).unwrap_or_default() {
        "EC2 Spot Instance Interruption Warning" => Event::Notice(instance(), Notice::Termination),
        "EC2 Instance Rebalance Recommendation" => Event::Notice(instance(), Notice::Rebalance),
        "EC2 Instance State-change Notification" => {
            match text(event.get("detail").and_then(|detail| detail.get("state"))).as_str() {
                "terminated" | "shutting-down" | "stopped" => Event::Changed,
                _ => Event::Other,
            }
        }
        _ => Event::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_by_their_kind() {
        let event = |kind: &str, detail: Value| {
            read(&json!({"detail-type": kind, "detail": detail}).to_string())
        };
        let detail = json!({"instance-id": "i-1"});
        assert_eq!(
            event("EC2 Spot Instance Interruption Warning", detail.clone()),
            Event::Notice("i-1".into(), Notice::Termination)
        );
        assert_eq!(
            event("EC2 Instance Rebalance Recommendation", detail),
            Event::Notice("i-1".into(), Notice::Rebalance)
        );
        let state =
            |state: &str| event("EC2 Instance State-change Notification", json!({"state": state}));
        assert_eq!((state("terminated"), state("running")), (Event::Changed, Event::Other));
        assert_eq!(read("no json"), Event::Other);
    }
}
