//! Services that speak JSON and name the action in a header: prices, commands, queue.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::{
    api::{ApiError, Meaning, patiently},
    http::{Endpoint, LIMIT},
    rate::Pace,
};

/// Of the protocol: services take one only.
#[derive(Clone, Copy, Debug)]
pub enum Version {
    /// Queues.
    V1_0,
    /// Commands and prices.
    V1_1,
}

/// One of them.
#[derive(Debug)]
pub struct JsonService {
    endpoint: Endpoint,
    pace: Pace,
    /// Before the action's name.
    prefix: &'static str,
    content_type: &'static str,
}

impl JsonService {
    /// For example of the prefix `AmazonSSM` and version `1.1` of the protocol.
    #[must_use]
    pub fn new(endpoint: Endpoint, prefix: &'static str, version: Version) -> Self {
        let content_type = match version {
            Version::V1_0 => "application/x-amz-json-1.0",
            Version::V1_1 => "application/x-amz-json-1.1",
        };
        Self { endpoint, pace: Pace::default(), prefix, content_type }
    }

    /// One call in its turn, a few times if the service asks for patience.
    pub async fn call(&self, action: &str, body: &Value) -> Result<Value, ApiError> {
        self.call_within(action, body, LIMIT).await
    }

    /// [`JsonService::call`] that may take so long.
    pub async fn call_within(
        &self,
        action: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Value, ApiError> {
        let target = format!("{}.{action}", self.prefix);
        let body = Bytes::from(body.to_string());
        patiently(|| self.once(&target, body.clone(), limit)).await
    }

    async fn once(&self, target: &str, body: Bytes, limit: Duration) -> Result<Value, ApiError> {
        self.pace.turn().await;
        let answer = self.endpoint.post(self.content_type, Some(target), body, limit).await?;
        let read = if answer.body.is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_slice::<Value>(&answer.body)
        };
        if answer.status.is_success() {
            self.pace.served();
            return read.map_err(|error| ApiError::Malformed {
                action: target.to_owned(),
                problem: error.to_string(),
            });
        }
        let refusal = refusal(answer.status, &read.unwrap_or_default());
        if refusal.meaning() == Meaning::Throttled {
            self.pace.throttled();
        }
        // The request's body is not told: it may hold a join secret.
        tracing::debug!(action = target, %refusal, "the service refused");
        Err(refusal)
    }
}

fn refusal(status: http::StatusCode, body: &Value) -> ApiError {
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let kind = text("__type").map(|kind| kind.rsplit('#').next().unwrap_or(kind));
    let code = match kind {
        Some(kind) => kind,
        None if status.is_server_error() => "InternalError",
        None => "Unreadable",
    };
    let message = text("message").or_else(|| text("Message")).map(str::to_owned);
    ApiError::refused(code, message.unwrap_or_else(|| format!("status {status}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_code_stands_behind_the_hash() {
        let status = http::StatusCode::BAD_REQUEST;
        let body = json!({"__type": "com.example#ThrottlingException", "message": "slow down"});
        assert_eq!(refusal(status, &body).meaning(), Meaning::Throttled);
        let junk = refusal(http::StatusCode::BAD_GATEWAY, &Value::Null);
        assert_eq!(junk.meaning(), Meaning::Unavailable);
    }
}
