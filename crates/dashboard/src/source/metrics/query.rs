//! The few questions that the dashboard has for metrics, as data: Prometheus gets them as text,
//! the scraper evaluates them itself.

use std::fmt::{self, Write as _};

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    /// The series.
    pub(crate) metric: &'static str,
    /// What is made of it.
    pub(crate) how: How,
    /// Labels that the answer is broken down by.
    pub(crate) by: &'static [&'static str],
    /// Labels that must have these values.
    pub(crate) matching: Vec<(&'static str, String)>,
}

/// What is made of a series. Windows are seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum How {
    /// Sum of the newest values.
    Sum,
    /// Greatest of the newest values.
    Max,
    /// Sum of what counters gain per second.
    Rate(u32),
    /// Quantile of a histogram, whose name has no suffix.
    Quantile(f64, u32),
    /// When the newest sample was taken, in unix seconds.
    Sampled,
    /// Seconds between two samples, of the series with the most of them in the window.
    Interval(u32),
}

impl Query {
    /// A question over all series of a metric.
    #[must_use]
    pub(crate) const fn new(metric: &'static str, how: How, by: &'static [&'static str]) -> Self {
        Self { metric, how, by, matching: Vec::new() }
    }

    /// Only of one process.
    #[must_use]
    pub(crate) fn of_pod(self, pod: &str) -> Self {
        self.matching("pod", pod)
    }

    /// Only with this value of a label.
    #[must_use]
    pub(crate) fn matching(mut self, label: &'static str, value: &str) -> Self {
        self.matching.push((label, value.to_owned()));
        self
    }
}

/// As Prometheus reads it.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut selector = self.metric.to_owned();
        if let How::Quantile(..) = self.how {
            selector.push_str("_bucket");
        }
        if !self.matching.is_empty() {
            selector.push('{');
            for (at, (label, value)) in self.matching.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                write!(selector, "{comma}{label}=\"{}\"", escaped(value))?;
            }
            selector.push('}');
        }
        let by = self.by.join(",");
        match self.how {
            How::Sum => write!(f, "sum by ({by}) ({selector})"),
            How::Max => write!(f, "max by ({by}) ({selector})"),
            How::Rate(window) => write!(f, "sum by ({by}) (rate({selector}[{window}s]))"),
            How::Quantile(quantile, window) => {
                let comma = if by.is_empty() { "" } else { "," };
                let rate = format!("sum by ({by}{comma}le) (rate({selector}[{window}s]))");
                write!(f, "histogram_quantile({quantile}, {rate})")
            }
            How::Sampled => write!(f, "max by ({by}) (timestamp({selector}))"),
            How::Interval(window) => {
                write!(f, "{window} / max by ({by}) (count_over_time({selector}[{window}s]))")
            }
        }
    }
}

/// A label's value between quotes: it may come from whoever asks.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_read_as_promql() {
        let text = |how, by| Query::new("m", how, by).of_pod("a\"b\\").to_string();
        assert_eq!(text(How::Sum, &["state", "pod"]), r#"sum by (state,pod) (m{pod="a\"b\\"})"#);
        assert_eq!(text(How::Rate(60), &[]), r#"sum by () (rate(m{pod="a\"b\\"}[60s]))"#);
        assert_eq!(
            Query::new("h", How::Quantile(0.99, 300), &["pod"]).to_string(),
            "histogram_quantile(0.99, sum by (pod,le) (rate(h_bucket[300s])))"
        );
        assert_eq!(
            Query::new("h", How::Quantile(0.5, 60), &[]).to_string(),
            "histogram_quantile(0.5, sum by (le) (rate(h_bucket[60s])))"
        );
        assert_eq!(
            Query::new("m", How::Sampled, &[]).matching("a", "b").to_string(),
            r#"max by () (timestamp(m{a="b"}))"#
        );
        assert_eq!(
            Query::new("m", How::Interval(300), &[]).to_string(),
            "300 / max by () (count_over_time(m[300s]))"
        );
    }
}
