//! What a run came to, for people and for machines.

mod human;
mod json;
mod junit;
pub(crate) mod readiness;

use std::{collections::BTreeMap, time::Duration};

use time::OffsetDateTime;

use crate::{
    catalogue::{Area, Profile, Test},
    gates::Gates,
    runner::Options,
    target::Target,
    trace::Call,
    verdict::{Status, Verdict},
};

/// One test of a run.
#[derive(Debug, Clone)]
pub struct Tested {
    /// Which.
    pub test: &'static Test,
    /// How it ended.
    pub status: Status,
    /// How long it took.
    pub took: Duration,
    /// What it called.
    pub evidence: Vec<Call>,
    /// What it measured.
    pub notes: Vec<String>,
}

impl Tested {
    /// Without evidence: it was not run.
    #[must_use]
    pub fn of(test: &'static Test, status: Status) -> Self {
        let (evidence, notes) = (Vec::new(), Vec::new());
        Self { test, status, took: Duration::ZERO, evidence, notes }
    }
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was tested.
    pub target: String,
    /// For what.
    pub profiles: Vec<Profile>,
    /// With these abilities.
    pub gates: Gates,
    /// The seed that replays it.
    pub seed: u64,
    /// When it began.
    pub started: OffsetDateTime,
    /// When it ended.
    pub finished: OffsetDateTime,
    /// How the target knows that a node is Ready.
    pub readiness: String,
    /// Every test of the profiles.
    pub tests: Vec<Tested>,
    /// What it comes to.
    pub verdict: Verdict,
}

/// The tests of one area.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// That passed.
    pub passed: usize,
    /// That failed.
    pub failed: usize,
    /// That were skipped by a gate.
    pub skipped: usize,
    /// That were not tried.
    pub not_tried: usize,
    /// Of the profiles.
    pub total: usize,
}

impl Report {
    pub(crate) fn new(
        options: &Options,
        target: &Target,
        gates: Gates,
        started: OffsetDateTime,
        readiness: String,
        tests: Vec<Tested>,
    ) -> Self {
        let results = tests.iter().map(|tested| (tested.test, &tested.status));
        let verdict = Verdict::of(&options.profiles, gates, results);
        Self {
            target: target.to_string(),
            profiles: options.profiles.clone(),
            gates,
            seed: options.seed,
            started,
            finished: OffsetDateTime::now_utc(),
            readiness,
            tests,
            verdict,
        }
    }

    /// Area by area.
    #[must_use]
    pub fn areas(&self) -> BTreeMap<Area, Summary> {
        let mut areas = BTreeMap::<Area, Summary>::new();
        for tested in &self.tests {
            let area = areas.entry(tested.test.area).or_default();
            area.total += 1;
            match tested.status {
                Status::Passed => area.passed += 1,
                Status::Failed(_) => area.failed += 1,
                Status::Skipped(_) => area.skipped += 1,
                Status::Short(_) | Status::Filtered => area.not_tried += 1,
            }
        }
        areas
    }

    fn names(&self) -> String {
        self.profiles.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
pub(crate) fn sample() -> Report {
    use crate::catalogue::find;

    let call = |call: &str, code: &str, times| Call {
        call: call.to_owned(),
        code: code.to_owned(),
        answer: String::new(),
        times,
    };
    let passed = |id| Tested {
        took: Duration::from_millis(12),
        ..Tested::of(find(id).unwrap(), Status::Passed)
    };
    let failed = Tested {
        took: Duration::from_millis(340),
        evidence: vec![
            call("Create \"m-1\" \"a\" (1,1)", "OK", 1),
            call("Create \"m-1\" \"a\" (1,1)", "OK", 2),
        ],
        ..Tested::of(
            find("SM-17").unwrap(),
            Status::Failed("Create of \"m-1\" must answer FAILED_PRECONDITION, not OK".into()),
        )
    };
    let mut figures = passed("SC-06");
    figures.notes = vec!["Get p50 1ms".to_owned()];
    let tests = vec![
        passed("SM-01"),
        failed,
        Tested::of(find("LI-03").unwrap(), Status::Skipped("gate rev is <closed>".into())),
        Tested::of(find("CO-07").unwrap(), Status::Short("needs 8 machines".into())),
        figures,
    ];
    let options =
        Options { profiles: vec![Profile::Core, Profile::Scale], seed: 7, ..Options::default() };
    let target = Target::Address("127.0.0.1:9000".into());
    let gates = Gates { slot: true, del: true, ..Gates::default() };
    let mut report =
        Report::new(&options, &target, gates, OffsetDateTime::UNIX_EPOCH, "observed".into(), tests);
    report.finished = OffsetDateTime::UNIX_EPOCH;
    report
}
