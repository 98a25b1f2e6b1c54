use bytes::Bytes;
use http::{Response, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use kube::core::Status;
use serde_json::json;

use crate::refusal::pause_of;

pub(super) type AnswerBody = BoxBody<Bytes, std::convert::Infallible>;

/// A whole answer, before it is HTTP.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: String,
    retry_after: Option<u32>,
}

impl Answer {
    pub(super) fn object(code: u16, body: impl Into<String>) -> Self {
        Self { code, body: body.into(), retry_after: None }
    }

    pub(super) fn success() -> Self {
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 200});
        Self::object(200, body.to_string())
    }

    pub(super) fn refusal(code: u16, reason: &str, message: &str) -> Self {
        let status = Status::failure(message, reason).with_code(code);
        Self::object(code, status_text(&status))
    }

    pub(super) fn retry_after(mut self, seconds: Option<u32>) -> Self {
        if let Some(seconds) = seconds {
            let status = Status::failure("too many requests", "TooManyRequests")
                .with_code(self.code)
                .with_details(pause_of(seconds));
            self.body = status_text(&status);
        }
        self.retry_after = seconds;
        self
    }

    pub(super) fn into_response(self) -> Response<AnswerBody> {
        let mut response = Response::new(Full::from(self.body).boxed());
        *response.status_mut() = http::StatusCode::from_u16(self.code).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// A Status as the server writes it.
pub(super) fn status_text(status: &Status) -> String {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    value["kind"] = "Status".into();
    value["apiVersion"] = "v1".into();
    value.to_string()
}
