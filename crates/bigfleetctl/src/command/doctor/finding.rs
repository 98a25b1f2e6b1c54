//! What was found.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Skipped,
    Warning,
    Fault,
}

impl Verdict {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "WARNING",
            Self::Fault => "FAULT",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) check: &'static str,
    pub(super) target: String,
    pub(super) detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) fix: String,
}

impl Finding {
    pub(super) fn is_fault(&self) -> bool {
        self.verdict == Verdict::Fault
    }
}

/// All of them, in the order in which they were looked at.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, verdict: Verdict, of: (&'static str, &str), detail: String, fix: String) {
        let (check, target) = (of.0, of.1.to_owned());
        self.0.push(Finding { verdict, check, target, detail, fix });
    }

    pub(super) fn ok(&mut self, check: &'static str, target: &str, detail: impl Into<String>) {
        self.add(Verdict::Ok, (check, target), detail.into(), String::new());
    }

    /// Not looked at; `fix` says what would make it possible.
    pub(super) fn skipped(
        &mut self,
        check: &'static str,
        target: &str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Verdict::Skipped, (check, target), detail.into(), fix.into());
    }

    pub(super) fn warning(
        &mut self,
        check: &'static str,
        target: &str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Verdict::Warning, (check, target), detail.into(), fix.into());
    }

    pub(super) fn fault(
        &mut self,
        check: &'static str,
        target: &str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Verdict::Fault, (check, target), detail.into(), fix.into());
    }

    pub(super) fn into_all(self) -> Vec<Finding> {
        self.0
    }
}
