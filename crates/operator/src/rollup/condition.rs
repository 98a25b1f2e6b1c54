//! Conditions of a request in few bytes: a patch of the list must carry all of it,
//! so all of it is kept.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as Full, Time};

use super::intern::Interner;

/// One condition. Texts are shared among requests; times have the API's resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `type`.
    pub kind: Arc<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// In one word.
    pub reason: Arc<str>,
    /// In words.
    pub message: Arc<str>,
    /// When the status changed, in unix seconds.
    pub since: i64,
    /// The generation it speaks of.
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Of what the API server has.
    #[must_use]
    pub fn of(full: &Full, texts: &Interner<str>) -> Self {
        Self {
            kind: texts.text(&full.type_),
            status: texts.text(&full.status),
            reason: texts.text(&full.reason),
            message: texts.text(&full.message),
            since: full.last_transition_time.0.as_second(),
            observed_generation: full.observed_generation,
        }
    }

    /// Whether it holds.
    #[must_use]
    pub fn is_true(&self) -> bool {
        &*self.status == "True"
    }

    /// Says the same, whenever it began to.
    #[must_use]
    pub fn says_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
    }
}

impl From<&Condition> for Full {
    fn from(condition: &Condition) -> Self {
        Self {
            type_: condition.kind.to_string(),
            status: condition.status.to_string(),
            reason: condition.reason.to_string(),
            message: condition.message.to_string(),
            last_transition_time: Time(
                Timestamp::from_second(condition.since).unwrap_or(Timestamp::UNIX_EPOCH),
            ),
            observed_generation: condition.observed_generation,
        }
    }
}
