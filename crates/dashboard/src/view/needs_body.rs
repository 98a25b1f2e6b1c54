//! The body of an answer with very many rows: parts that are sent as they lie in memory.

use std::{collections::VecDeque, convert::Infallible};

use axum::{
    body::Body as HttpBody,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};

/// Parts of one JSON object, in order.
#[derive(Debug, Default)]
pub(crate) struct Body(VecDeque<Bytes>);

impl Body {
    /// One more part.
    pub(crate) fn push(&mut self, part: impl Into<Bytes>) {
        self.0.push_back(part.into());
    }
}

impl IntoResponse for Body {
    fn into_response(self) -> Response {
        let length: usize = self.0.iter().map(Bytes::len).sum();
        let parts = futures_util::stream::iter(self.0.into_iter().map(Ok::<_, Infallible>));
        let headers = [
            (CONTENT_TYPE, "application/json".to_owned()),
            (CACHE_CONTROL, "no-store".to_owned()),
            (CONTENT_LENGTH, length.to_string()),
        ];
        (headers, HttpBody::from_stream(parts)).into_response()
    }
}
