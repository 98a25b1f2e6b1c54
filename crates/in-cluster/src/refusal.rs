//! What a refused call tells: its code, and how long the server wants to be left alone.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{Either, Full};
use kube::{
    client::Body,
    core::{Status, response::StatusDetails},
};
use tower::{Layer, Service};

/// The status code the server answered with; none when the call never got an answer.
#[must_use]
pub fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether the same call may succeed later: no answer, conflict, overload, server error.
#[must_use]
pub fn is_passing(error: &kube::Error) -> bool {
    code(error).is_none_or(|code| code == 409 || code == 429 || code >= 500)
}

/// Whether a disruption budget refuses an eviction. It says nothing about the server's load.
#[must_use]
pub fn is_disruption_budget(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 429 && causes.into_iter().any(|cause| cause.reason == "DisruptionBudget")
}

/// How long the server asks to be left alone: a second where it says "too many requests" and
/// names no time.
#[must_use]
pub fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    if !matches!(status.code, 429 | 503 | 504) || is_disruption_budget(error) {
        return None;
    }
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    match seconds {
        0 if status.code == 429 => Some(Duration::from_secs(1)),
        0 => None,
        seconds => Some(Duration::from_secs(u64::from(seconds))),
    }
}

/// Carries a `Retry-After` header over into the body, where [`retry_after`] finds it: priority
/// and fairness answers in plain text, and the client drops headers of errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryAfterLayer;

impl<S> Layer<S> for RetryAfterLayer {
    type Service = CarryOver<S>;

    fn layer(&self, inner: S) -> CarryOver<S> {
        CarryOver { inner }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CarryOver<S> {
    inner: S,
}

impl<S, B> Service<Request<Body>> for CarryOver<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<Carried<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(carry_over(answer.await?)) })
    }
}

/// The answer as it came, or our words in its place.
type Carried<B> = Either<B, Full<Bytes>>;

fn carry_over<B>(answer: Response<B>) -> Response<Carried<B>> {
    let headers = answer.headers();
    let code = answer.status();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_json =
        text(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"));
    let seconds = text(header::RETRY_AFTER).and_then(|value| value.trim().parse::<u32>().ok());
    let (false, true, Some(retry_after_seconds)) =
        (is_json, matches!(code.as_u16(), 429 | 503 | 504), seconds)
    else {
        return answer.map(Either::Left);
    };
    let status = Status::failure("the server asks for a pause", "Overloaded")
        .with_code(code.as_u16())
        .with_details(pause_of(retry_after_seconds));
    match serde_json::to_vec(&status) {
        Ok(body) => answer.map(|_| Either::Right(Full::from(body))),
        Err(_) => answer.map(Either::Left),
    }
}

pub(crate) fn pause_of(retry_after_seconds: u32) -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::response::StatusCause;

    fn refused(code: u16, seconds: u32) -> kube::Error {
        let status = Status::failure("no", "No").with_code(code).with_details(pause_of(seconds));
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn reads_the_time_out_of_the_body() {
        assert_eq!(retry_after(&refused(429, 7)), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&refused(503, 2)), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(&refused(429, 0)), Some(Duration::from_secs(1)));
        assert_eq!(retry_after(&refused(503, 0)), None);
        assert_eq!(retry_after(&refused(409, 5)), None);
    }

    #[test]
    fn a_disruption_budget_is_no_overload() {
        let cause = StatusCause {
            reason: "DisruptionBudget".into(),
            message: String::new(),
            field: String::new(),
        };
        let details = StatusDetails { causes: vec![cause], ..pause_of(10) };
        let status = Status::failure("no", "TooManyRequests").with_code(429).with_details(details);
        assert_eq!(retry_after(&kube::Error::Api(status.boxed())), None);
    }

    #[tokio::test]
    async fn a_header_on_plain_text_reaches_the_error() {
        let overloaded = tower::service_fn(|_: Request<Body>| async {
            Response::builder()
                .status(429)
                .header("retry-after", "3")
                .header("content-type", "text/plain; charset=utf-8")
                .body(Body::from(b"Too many requests, please try again later.".to_vec()))
        });
        let client = kube::Client::new(RetryAfterLayer.layer(overloaded), "default");
        let error = client.apiserver_version().await.unwrap_err();
        assert_eq!(retry_after(&error), Some(Duration::from_secs(3)));
    }
}
