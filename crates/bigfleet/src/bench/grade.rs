//! Lines of the table of figures with bars.

use super::quality::Grade;

/// A figure for information.
pub(super) fn told(what: &'static str, found: String) -> Grade {
    Grade { what, found, bar: None, holds: true }
}

pub(super) fn at_most(what: &'static str, found: f64, bar: f64) -> Grade {
    let holds = found <= bar;
    Grade { what, found: format!("{found:.1}"), bar: Some(format!("<= {bar:.1}")), holds }
}

pub(super) fn at_least(what: &'static str, found: f64, bar: f64) -> Grade {
    let holds = found >= bar;
    Grade { what, found: format!("{found:.1}"), bar: Some(format!(">= {bar:.1}")), holds }
}

pub(super) fn spaced(figures: &[f64]) -> String {
    figures.iter().map(|one| format!("{one:.1}")).collect::<Vec<_>>().join("  ")
}

pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
