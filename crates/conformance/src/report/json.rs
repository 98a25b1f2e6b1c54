//! For machines.

use std::collections::BTreeMap;

use serde::Serialize;
use time::OffsetDateTime;

use super::{Report, Summary};
use crate::{
    catalogue::{Area, Profile, Severity},
    trace::Call,
    verdict::{Status, Verdict},
};

#[derive(Serialize)]
struct Json<'a> {
    target: &'a str,
    profiles: &'a [Profile],
    gates: BTreeMap<&'static str, bool>,
    seed: u64,
    started: String,
    finished: String,
    readiness: &'a str,
    tests: Vec<JsonTest<'a>>,
    summary: BTreeMap<Area, Summary>,
    verdict: Verdict,
}

#[derive(Serialize)]
struct JsonTest<'a> {
    id: &'a str,
    title: &'a str,
    profiles: &'a [Profile],
    severity: Severity,
    #[serde(flatten)]
    status: &'a Status,
    ms: u128,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    figures: &'a [String],
    evidence: &'a [Call],
}

/// RFC 3339, in whole seconds.
fn instant(at: OffsetDateTime) -> String {
    let (hour, minute, second) = at.to_hms();
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

impl Report {
    /// As JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        let tests = self.tests.iter().map(|tested| JsonTest {
            id: tested.test.id,
            title: tested.test.title,
            profiles: tested.test.profiles,
            severity: tested.test.severity,
            status: &tested.status,
            ms: tested.took.as_millis(),
            figures: &tested.notes,
            evidence: &tested.evidence,
        });
        serde_json::to_string_pretty(&Json {
            target: &self.target,
            profiles: &self.profiles,
            gates: self.gates.by_name(),
            seed: self.seed,
            started: instant(self.started),
            finished: instant(self.finished),
            readiness: &self.readiness,
            tests: tests.collect(),
            summary: self.areas(),
            verdict: self.verdict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;

    #[test]
    fn holds_everything() {
        insta::assert_snapshot!(sample().json().unwrap());
    }
}
