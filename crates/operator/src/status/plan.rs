//! What a write of a request's status carries. Pure: what is known and what is to be
//! said in, a patch out.

use std::sync::Arc;

use bigfleet_crds::conditions;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as Full, Time};
use serde_json::{Value, json};

use crate::rollup::{Condition, Interner, Phase, Request, Untranslatable};

/// What a request's status says, as far as we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) version: u64,
    pub(super) generation: i64,
    pub(super) phase: Phase,
    pub(super) conditions: Box<[Condition]>,
}

impl From<&Request> for Known {
    fn from(request: &Request) -> Self {
        Self {
            version: request.version,
            generation: request.generation,
            phase: request.phase,
            conditions: request.conditions.clone(),
        }
    }
}

/// What is to be said of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// The shard has accepted it.
    Acknowledged,
    /// It is understood, or not.
    Translatable(Result<(), Arc<Untranslatable>>),
    /// The fleet covers it, or not.
    Satisfied {
        /// Whether it does.
        met: bool,
        /// In one word.
        reason: String,
        /// In words.
        message: String,
    },
}

impl Say {
    fn condition(&self) -> (&'static str, bool, &str, String) {
        match self {
            Self::Acknowledged => {
                let message = "the shard has accepted this demand".to_owned();
                (conditions::ACKNOWLEDGED, true, "RollupAccepted", message)
            }
            Self::Translatable(Ok(())) => {
                let message = "counted in every roll-up".to_owned();
                (conditions::TRANSLATABLE, true, "Translated", message)
            }
            Self::Translatable(Err(why)) => {
                (conditions::TRANSLATABLE, false, "Untranslatable", why.to_string())
            }
            Self::Satisfied { met, reason, message } => {
                (conditions::SATISFIED, *met, reason, message.clone())
            }
        }
    }
}

/// The patch that says it; none if it is said already.
///
/// A merge patch replaces lists, so all conditions go along; the schema demands the
/// phase, so it does, too. Acknowledged is never taken back: a write that would say
/// Pending holds only for the version it was made of.
pub(super) fn plan(
    known: &Known,
    say: &Say,
    now: Timestamp,
    texts: &Interner<str>,
) -> Option<Value> {
    if *say == Say::Acknowledged && known.phase == Phase::Acknowledged {
        return None;
    }
    let (kind, holds, reason, message) = say.condition();
    let mut conditions: Vec<Condition> = known.conditions.to_vec();
    let old = conditions.iter().position(|condition| &*condition.kind == kind);
    let mut new = Condition {
        kind: texts.text(kind),
        status: texts.text(if holds { "True" } else { "False" }),
        reason: texts.text(reason),
        message: texts.text(&message),
        since: now.as_second(),
        observed_generation: Some(known.generation),
    };
    match old.map(|at| &mut conditions[at]) {
        Some(old) => {
            let said = old.says_same(&new) && old.observed_generation == new.observed_generation;
            if said && *say != Say::Acknowledged {
                return None;
            }
            if old.status == new.status {
                new.since = old.since;
            }
            *old = new;
        }
        None => conditions.push(new),
    }
    let conditions: Vec<Full> = conditions.iter().map(Into::into).collect();
    let mut status = json!({
        "phase": known.phase.label(),
        "observedGeneration": known.generation,
        "conditions": conditions,
    });
    let mut patch = json!({});
    if *say == Say::Acknowledged {
        status["phase"] = json!(Phase::Acknowledged.label());
        status["acknowledgedAt"] = json!(Time(now));
    } else if known.phase == Phase::Pending {
        patch["metadata"] = json!({"resourceVersion": known.version.to_string()});
    }
    patch["status"] = status;
    Some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(phase: Phase, conditions: &[(&str, &str)]) -> Known {
        let condition = |(kind, status): &(&str, &str)| Condition {
            kind: (*kind).into(),
            status: (*status).into(),
            reason: "Old".into(),
            message: "old".into(),
            since: 50,
            observed_generation: Some(3),
        };
        let conditions = conditions.iter().map(condition).collect();
        Known { version: 41, generation: 3, phase, conditions }
    }

    fn patch(known: &Known, say: &Say) -> Option<Value> {
        plan(known, say, Timestamp::from_second(100).unwrap(), &Interner::default())
    }

    fn satisfied(met: bool) -> Say {
        Say::Satisfied { met, reason: "Because".into(), message: "so it is".into() }
    }

    #[test]
    fn an_ack_is_one_patch_with_all_it_needs() {
        let patch = patch(&known(Phase::Pending, &[]), &Say::Acknowledged).unwrap();
        assert_eq!(
            patch,
            json!({"status": {
                "phase": "Acknowledged",
                "acknowledgedAt": "1970-01-01T00:01:40Z",
                "observedGeneration": 3,
                "conditions": [{
                    "type": "Acknowledged", "status": "True", "reason": "RollupAccepted",
                    "message": "the shard has accepted this demand",
                    "lastTransitionTime": "1970-01-01T00:01:40Z", "observedGeneration": 3,
                }],
            }})
        );
    }

    #[test]
    fn operator_inv_06_acknowledged_is_said_once_and_never_taken_back() {
        let done = known(Phase::Acknowledged, &[("Acknowledged", "True")]);
        assert_eq!(patch(&done, &Say::Acknowledged), None);
        let later = patch(&done, &satisfied(false)).unwrap();
        assert_eq!(later["status"]["phase"], "Acknowledged");
        assert_eq!(later["metadata"], Value::Null);
        // Said of a version that may be old: only that version may be overwritten.
        let early = patch(&known(Phase::Pending, &[]), &satisfied(false)).unwrap();
        assert_eq!(early["status"]["phase"], "Pending");
        assert_eq!(early["metadata"]["resourceVersion"], "41");
    }

    #[test]
    fn every_write_carries_the_other_conditions() {
        let before = known(Phase::Pending, &[("Foreign", "Unknown"), ("Translatable", "False")]);
        for say in [Say::Acknowledged, Say::Translatable(Ok(())), satisfied(true)] {
            let patch = patch(&before, &say).unwrap();
            let kinds: Vec<&str> = patch["status"]["conditions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|condition| condition["type"].as_str().unwrap())
                .collect();
            assert!(kinds.contains(&"Foreign") && kinds.contains(&"Translatable"), "{kinds:?}");
            assert!(kinds.len() <= 3, "{kinds:?}");
        }
    }

    #[test]
    fn what_is_said_already_is_not_written_again() {
        let mut before = known(Phase::Acknowledged, &[("Satisfied", "False")]);
        let first = patch(&before, &satisfied(false)).unwrap();
        let condition = &first["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:50Z", "it still is False");
        before.conditions[0].reason = "Because".into();
        before.conditions[0].message = "so it is".into();
        assert_eq!(patch(&before, &satisfied(false)), None);
        let turned = patch(&before, &satisfied(true)).unwrap();
        let condition = &turned["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:01:40Z");
    }
}
