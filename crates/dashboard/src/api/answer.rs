//! An answer that says when its sources were asked.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use jiff::Timestamp;
use serde::Serialize;

use super::{Refusal, Source};
use crate::source::coalesce::{Fetched, Outcome};

/// A body with `queriedAt`.
#[derive(Serialize)]
pub(crate) struct Answer<T> {
    #[serde(flatten)]
    body: T,
    #[serde(rename = "queriedAt", serialize_with = "rfc3339")]
    at: Timestamp,
}

fn rfc3339<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.3}"))
}

impl<T> Answer<T> {
    /// Of sources asked at this time.
    pub(crate) const fn at(at: Timestamp, body: T) -> Self {
        Self { body, at }
    }

    /// What is said.
    pub(crate) const fn body(&self) -> &T {
        &self.body
    }

    /// What is said, alone.
    pub(crate) fn into_body(self) -> T {
        self.body
    }

    /// Of no source.
    pub(crate) fn now(body: T) -> Self {
        Self::at(Timestamp::now(), body)
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self) {
            Ok(json) => {
                let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
                (headers, json).into_response()
            }
            Err(error) => Refusal::failed(Source::Shard, error).into_response(),
        }
    }
}

/// Takes answers of sources, and remembers when the first of them was asked.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    at: Option<Timestamp>,
}

impl Asked {
    /// Nobody so far.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One more answer.
    pub(crate) fn take<V>(&mut self, outcome: Outcome<V>) -> Result<Arc<Fetched<V>>, Refusal> {
        let fetched = outcome?;
        self.at = Some(self.at.map_or(fetched.at, |at| at.min(fetched.at)));
        Ok(fetched)
    }

    /// The whole.
    #[must_use]
    pub(crate) fn answer<T>(self, body: T) -> Answer<T> {
        Answer::at(self.at.unwrap_or_else(Timestamp::now), body)
    }
}
