//! Parameters of a question.

use std::time::Duration;

use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::Refusal;

/// Parameters after the `?`; what cannot be read is 400.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Refusal::BadParameter(rejection.body_text())),
        }
    }
}

/// Parameters in the path; what cannot be read is 400.
#[derive(Debug)]
pub(crate) struct InPath<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for InPath<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(params)) => Ok(Self(params)),
            Err(rejection) => Err(Refusal::BadParameter(rejection.body_text())),
        }
    }
}

/// A parameter that must be there.
pub(crate) fn required<'a>(name: &str, value: &'a str) -> Result<&'a str, Refusal> {
    if value.is_empty() {
        return Err(Refusal::BadParameter(format!("parameter {name} is missing")));
    }
    Ok(value)
}

/// How many rows: the usual number, or another up to the most.
pub(crate) fn limit(given: Option<u32>, usual: u32, most: u32) -> Result<u32, Refusal> {
    match given {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => {
            Err(Refusal::BadParameter(format!("limit {limit}: give a number from 1 to {most}")))
        }
    }
}

/// `duration` and `step` of a question over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    pub(crate) usual: Duration,
    pub(crate) longest: Duration,
    pub(crate) widest: Duration,
}

/// Points of one plot; more than any screen has.
const MOST_POINTS: u64 = 2_000;

impl Over {
    /// Both as asked for, in their bounds.
    pub(crate) fn read(
        self,
        duration: Option<&str>,
        step: Option<&str>,
    ) -> Result<(Duration, Duration), Refusal> {
        let parse = |name: &str, text: &str, most: Duration| {
            let bad = |problem: String| Refusal::BadParameter(format!("{name}: {problem}"));
            let given = bigfleet_net::duration::parse(text).map_err(bad)?;
            if given < Duration::from_secs(1) || given > most {
                let most = most.as_secs();
                return Err(bad(format!("{text:?}: give a time from 1s to {most}s")));
            }
            Ok(given)
        };
        let duration =
            duration.map_or(Ok(self.usual), |text| parse("duration", text, self.longest))?;
        let usual_step =
            Duration::from_secs((duration.as_secs() / 120).clamp(5, self.widest.as_secs()));
        let step = step.map_or(Ok(usual_step), |text| parse("step", text, self.widest))?;
        if duration.as_secs() / step.as_secs().max(1) > MOST_POINTS {
            let problem = format!("step: more than {MOST_POINTS} points; take a wider step");
            return Err(Refusal::BadParameter(problem));
        }
        Ok((duration, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: Over = Over {
        usual: Duration::from_secs(3600),
        longest: Duration::from_secs(86_400),
        widest: Duration::from_secs(3600),
    };

    #[test]
    fn spans_stay_in_their_bounds() {
        let seconds = |(a, b): (Duration, Duration)| (a.as_secs(), b.as_secs());
        assert_eq!(OVER.read(None, None).map(seconds), Ok((3600, 30)));
        assert_eq!(OVER.read(Some("24h"), Some("1h")).map(seconds), Ok((86_400, 3600)));
        for (duration, step) in [
            (Some("25h"), None),
            (None, Some("2h")),
            (Some("0"), None),
            (None, Some("0")),
            (Some("24h"), Some("1s")),
            (Some("x"), None),
            (Some("-1h"), None),
            (Some("500ms"), None),
        ] {
            assert!(OVER.read(duration, step).is_err(), "{duration:?} {step:?}");
        }
    }

    #[test]
    fn limits_are_positive_and_bounded() {
        assert_eq!((limit(None, 5, 9), limit(Some(9), 5, 9)), (Ok(5), Ok(9)));
        assert!(limit(Some(0), 5, 9).is_err() && limit(Some(10), 5, 9).is_err());
    }
}
