//! The verdict. A skip must not pass silently: a required test that was not
//! tried leaves the certificate open.

use serde::Serialize;

use crate::{
    catalogue::{Profile, Severity, Test},
    gates::Gates,
};

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "reason", rename_all = "lowercase")]
pub enum Status {
    /// The rule holds.
    Passed,
    /// The rule is broken.
    Failed(String),
    /// A gate is closed.
    Skipped(String),
    /// It could not be tried: too few machines, or no way to boot the target.
    Short(String),
    /// `--filter` left it out.
    Filtered,
}

impl Status {
    /// One word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
            Self::Short(_) => "not tried",
            Self::Filtered => "filtered",
        }
    }

    /// Why it did not pass.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Failed(reason) | Self::Skipped(reason) | Self::Short(reason) => reason,
            Self::Passed | Self::Filtered => "",
        }
    }
}

/// What a run comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// All required tests passed.
    Certified,
    /// A required test failed.
    Failed,
    /// A required test was not tried.
    Incomplete,
}

impl Verdict {
    /// Of these tests, for these profiles, with these gates open.
    #[must_use]
    pub fn of<'a>(
        profiles: &[Profile],
        gates: Gates,
        results: impl IntoIterator<Item = (&'a Test, &'a Status)>,
    ) -> Self {
        let mut verdict = Self::Certified;
        for (test, status) in results {
            if test.severity != Severity::M || !test.is_asked_by(profiles) {
                continue;
            }
            match status {
                Status::Passed => {}
                Status::Failed(_) => return Self::Failed,
                Status::Short(_) | Status::Filtered => verdict = Self::Incomplete,
                Status::Skipped(_) if is_claimed(test, profiles, gates) => {
                    verdict = Self::Incomplete
                }
                Status::Skipped(_) => {}
            }
        }
        verdict
    }

    /// How the process ends.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Certified => 0,
            Self::Failed => 1,
            Self::Incomplete => 3,
        }
    }
}

/// Whether the gate that is closed is the very claim of a profile: "durable"
/// cannot be certified where nothing may be killed.
fn is_claimed(test: &Test, profiles: &[Profile], gates: Gates) -> bool {
    let asked = test.profiles.iter().filter(|profile| profiles.contains(profile));
    asked
        .flat_map(|profile| profile.claims())
        .any(|&gate| test.gates.contains(&gate) && !gates.is_open(gate))
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Certified => "CERTIFIED",
            Self::Failed => "FAILED",
            Self::Incomplete => "INCOMPLETE",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::find;

    fn verdict(profiles: &[Profile], results: &[(&str, Status)]) -> Verdict {
        let results: Vec<_> =
            results.iter().map(|(id, status)| (find(id).unwrap(), status)).collect();
        Verdict::of(profiles, Gates::default(), results)
    }

    fn text() -> String {
        "why".to_owned()
    }

    #[test]
    fn all_required_passed_is_certified() {
        use Profile::{Cloud, Core, Strict};
        let passed = Status::Passed;
        assert_eq!(verdict(&[Core], &[("SM-01", passed)]), Verdict::Certified);
        // Not asked for, or a warning only.
        let failed = Status::Failed(text());
        assert_eq!(verdict(&[Core], &[("ST-01", failed.clone())]), Verdict::Certified);
        assert_eq!(verdict(&[Strict], &[("ST-15", failed.clone())]), Verdict::Certified);
        assert_eq!(verdict(&[Cloud], &[("LC-08", failed)]), Verdict::Failed);
    }

    #[test]
    fn a_closed_gate_is_a_reason_unless_it_is_the_claim() {
        let skipped = Status::Skipped(text());
        assert_eq!(verdict(&[Profile::Core], &[("LI-03", skipped.clone())]), Verdict::Certified);
        assert_eq!(verdict(&[Profile::Core], &[("SM-05", skipped.clone())]), Verdict::Certified);
        assert_eq!(
            verdict(&[Profile::Durable], &[("DU-01", skipped.clone())]),
            Verdict::Incomplete
        );
        assert_eq!(verdict(&[Profile::Cloud], &[("LC-08", skipped.clone())]), Verdict::Incomplete);
        // Open, but there were no slots: not its claim.
        let open = Gates { del: true, ..Gates::default() };
        let results = [(find("LC-08").unwrap(), &skipped)];
        assert_eq!(Verdict::of(&[Profile::Cloud], open, results), Verdict::Certified);
    }

    #[test]
    fn what_was_not_tried_leaves_it_open_and_a_failure_wins() {
        let (short, filtered) = (Status::Short(text()), Status::Filtered);
        assert_eq!(verdict(&[Profile::Core], &[("SM-01", short.clone())]), Verdict::Incomplete);
        assert_eq!(verdict(&[Profile::Core], &[("SM-01", filtered)]), Verdict::Incomplete);
        let both = [("SM-01", short), ("SM-02", Status::Failed(text()))];
        assert_eq!(verdict(&[Profile::Core], &both), Verdict::Failed);
    }

    #[test]
    fn exit_codes() {
        let codes =
            [Verdict::Certified, Verdict::Failed, Verdict::Incomplete].map(Verdict::exit_code);
        assert_eq!(codes, [0, 1, 3]);
    }
}
