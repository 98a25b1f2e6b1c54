//! For people: areas, figures, then every failure with its calls.

use std::fmt::Write;

use super::Report;
use crate::{catalogue::Severity, verdict::Status};

impl Report {
    /// As text.
    #[must_use]
    pub fn human(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_human(&mut text);
        text
    }

    fn write_human(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "target     {}", self.target)?;
        writeln!(text, "profiles   {}", self.names())?;
        let gates = self.gates.by_name();
        let gates: Vec<_> = gates
            .iter()
            .map(|(name, open)| format!("{name} {}", if *open { "open" } else { "closed" }))
            .collect();
        writeln!(text, "gates      {}", gates.join(", "))?;
        writeln!(text, "readiness  {}", self.readiness)?;
        writeln!(text, "seed       {} (replay with --seed {})", self.seed, self.seed)?;
        writeln!(text)?;
        for (area, summary) in self.areas() {
            let mut line = format!("{area:12} {}/{}", summary.passed, summary.total);
            for (count, word) in [
                (summary.failed, "failed"),
                (summary.skipped, "skipped"),
                (summary.not_tried, "not tried"),
            ] {
                if count > 0 {
                    write!(line, ", {count} {word}")?;
                }
            }
            writeln!(text, "{line}")?;
        }
        for tested in &self.tests {
            for note in &tested.notes {
                writeln!(text, "{}  {note}", tested.test.id)?;
            }
        }
        for tested in &self.tests {
            let (id, title) = (tested.test.id, tested.test.title);
            match &tested.status {
                Status::Passed | Status::Filtered => {}
                Status::Skipped(reason) => writeln!(text, "skipped {id}: {reason}")?,
                Status::Short(reason) => writeln!(text, "NOT TRIED {id}: {reason}")?,
                Status::Failed(reason) => {
                    let word = match tested.test.severity {
                        Severity::M => "FAILED",
                        Severity::W => "WARNING",
                    };
                    writeln!(text, "\n{word} {id} {title}\n  {reason}\n  calls:")?;
                    for call in &tested.evidence {
                        writeln!(text, "    {call}")?;
                    }
                }
            }
        }
        writeln!(text, "\n{} {}", self.verdict, self.names())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;

    #[test]
    fn areas_then_failures_with_their_calls() {
        insta::assert_snapshot!(sample().human());
    }
}
