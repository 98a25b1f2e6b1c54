//! For continuous integration: one suite per area.

use std::fmt::Write;

use super::{Report, Tested};
use crate::{catalogue::Severity, verdict::Status};

impl Report {
    /// As JUnit XML.
    #[must_use]
    pub fn junit(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        for (area, summary) in self.areas() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{area}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
                summary.total,
                summary.failed,
                summary.skipped + summary.not_tried
            );
            for tested in self.tests.iter().filter(|tested| tested.test.area == area) {
                xml.push_str(&case(tested));
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml
    }
}

fn case(tested: &Tested) -> String {
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{} {}\" time=\"{:.3}\"",
        tested.test.area,
        tested.test.id,
        escaped(tested.test.title),
        tested.took.as_secs_f64()
    );
    let calls = || tested.evidence.iter().map(|call| format!("{call}\n")).collect::<String>();
    let body = match (&tested.status, tested.test.severity) {
        (Status::Passed, _) => return format!("{head}/>\n"),
        (Status::Failed(reason), Severity::M) => format!(
            "      <failure message=\"{}\">{}</failure>\n",
            escaped(reason),
            escaped(&calls())
        ),
        // A warning fails no build.
        (Status::Failed(reason), Severity::W) => {
            format!("      <system-out>{}</system-out>\n", escaped(&format!("WARNING {reason}")))
        }
        (status, _) => format!(
            "      <skipped message=\"{}: {}\"/>\n",
            status.word(),
            escaped(status.reason())
        ),
    };
    format!("{head}>\n{body}    </testcase>\n")
}

/// Text as XML allows it; control characters it does not know become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{super::sample, escaped};

    #[test]
    fn one_suite_per_area() {
        insta::assert_snapshot!(sample().junit());
    }

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(escaped("<a b=\"c\">&\0\n"), "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}\n");
    }
}
