//! The caller's deadline: work for an answer that nobody awaits is dropped.

use std::time::Duration;

use http::{HeaderMap, Response};
use tokio::time::Instant;
use tonic::{Request, Status, body::Body};

/// When the caller stops waiting: every request of a
/// [`GrpcServer`](crate::grpc::GrpcServer) that came with a deadline carries
/// one. For handlers that must not begin what nobody awaits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(Instant);

impl Deadline {
    /// Servers make their own; tests that call a service directly put one into
    /// the request's extensions.
    #[must_use]
    pub fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// The deadline that a request came with.
    #[must_use]
    pub fn of<T>(request: &Request<T>) -> Option<Instant> {
        request.extensions().get::<Self>().map(|deadline| deadline.0)
    }
}

/// The time that header `grpc-timeout` leaves for the call. A value that is
/// not of the protocol sets no deadline.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let legal = (1..=8).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = legal.then(|| number.parse().ok())??;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// The answer, or `DEADLINE_EXCEEDED` when the time is over. A stream that
/// has begun is the caller's to end.
pub(super) async fn within<E>(
    limit: Option<Duration>,
    answer: impl Future<Output = Result<Response<Body>, E>>,
) -> Result<Response<Body>, E> {
    let Some(limit) = limit else {
        return answer.await;
    };
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Ok(Status::deadline_exceeded("the caller's deadline has passed").into_http()),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn header(value: &str) -> HeaderMap {
        HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn reads_the_protocols_forms_only() {
        for (text, seconds) in [("2H", 7200), ("3M", 180), ("4S", 4), ("5000m", 5)] {
            assert_eq!(of(&header(text)), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(of(&header("7u")), Some(Duration::from_micros(7)));
        assert_eq!(of(&header("7n")), Some(Duration::from_nanos(7)));
        for text in ["", "S", "5", "5s", "-5S", "+5S", "123456789S", "5 S"] {
            assert_eq!(of(&header(text)), None, "{text}");
        }
        assert_eq!(of(&HeaderMap::new()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_when_the_time_is_over() {
        let never = std::future::pending::<Result<Response<Body>, Infallible>>();
        let Ok(response) = within(Some(Duration::from_secs(1)), never).await;
        assert_eq!(response.headers()["grpc-status"], "4");
    }
}
