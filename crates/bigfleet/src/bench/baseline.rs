//! Comparing with an earlier run.

use std::{fs, path::Path};

use super::measure::{Measurement, Report};
use crate::error::Error;

/// How much worse a figure may get. Ratios and allocations are compared, not
/// milliseconds, which depend on what else the machine does.
const TOLERATED: f64 = 1.10;

pub(super) fn read(path: &Path) -> Result<Vec<Measurement>, Error> {
    let text = fs::read_to_string(path)
        .map_err(|source| Error::ReadBaseline { path: path.to_owned(), source })?;
    let report: Report = serde_json::from_str(&text)
        .map_err(|source| Error::ParseBaseline { path: path.to_owned(), source })?;
    Ok(report.scenarios)
}

/// Fails if a figure is more than a tenth worse than it was.
pub(super) fn check(measured: &[Measurement], baseline: &[Measurement]) -> Result<(), Error> {
    let mut worse = Vec::new();
    for now in measured {
        let Some(before) = baseline.iter().find(|other| other.is_same_as(now)) else { continue };
        for (what, now_is, was) in [
            ("ratio to a scan", now.scan_ratio, before.scan_ratio),
            ("allocations", now.allocs_per_cycle, before.allocs_per_cycle),
        ] {
            if now_is > was * TOLERATED {
                let name = &now.name;
                let variant = &now.variant;
                worse.push(format!("{name} {variant}: {what} {now_is:.1}, was {was:.1}"));
            }
        }
    }
    if worse.is_empty() { Ok(()) } else { Err(Error::Worse(worse.join("; "))) }
}
