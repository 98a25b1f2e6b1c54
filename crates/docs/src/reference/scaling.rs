//! The numbers of the scaling guide, from the committed results of `bigfleet bench`.

use std::{fmt::Write as _, path::PathBuf};

use serde_json::Value;

use crate::{Error, read};

const PAGE: &str = "docs/scaling-guide.md";
const RESULTS: &str = "bench/baseline.json";
const BEGIN: &str = "<!-- generated from bench/baseline.json -->\n";
const END: &str = "<!-- end -->\n";

/// What is shown: scenario, variant, in words.
const ROWS: [(&str, &str, &str); 12] = [
    ("field-5k", "cold", "engine, from nothing"),
    ("field-5k", "steady", "engine, churn of a living fleet"),
    ("field-50k", "cold", "engine, from nothing"),
    ("field-50k", "steady", "engine, churn of a living fleet"),
    ("field-50k", "burst", "engine, a tenth more demand at once"),
    ("field-500k", "cold", "engine, from nothing"),
    ("field-500k", "steady", "engine, churn of a living fleet"),
    ("field-500k", "burst", "engine, a tenth more demand at once"),
    ("gangs-776k", "steady", "engine, very many groups"),
    ("shard-step", "50k/incremental", "whole shard, one cycle"),
    ("shard-step", "100k/incremental", "whole shard, one cycle"),
    ("shard-step", "500k/incremental", "whole shard, one cycle"),
];

/// The guide with the numbers of the results.
pub(super) fn page() -> Result<String, Error> {
    let wrong = |path: &str, problem: &str| Error::Manifest {
        path: PathBuf::from(path),
        problem: problem.into(),
    };
    let results: Value = serde_json::from_str(&read(RESULTS)?)
        .map_err(|error| wrong(RESULTS, &error.to_string()))?;
    let text = read(PAGE)?;
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| wrong(PAGE, BEGIN.trim()))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| wrong(PAGE, END.trim()))?;
    let mut table = String::from(
        "| Machine records | Needs | What | p50 | p99 | Peak memory of the run |\n|---|---|---|---|---|---|\n",
    );
    for (name, variant, what) in ROWS {
        let row = results["scenarios"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|row| row["name"] == name && row["variant"] == variant)
            .ok_or_else(|| wrong(RESULTS, &format!("no {name} {variant}")))?;
        let number = |field: &str| row[field].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            table,
            "| {} | {} | {what} (`{name}`) | {:.1} ms | {:.1} ms | {:.0} MiB |",
            thousands(number("machines")),
            thousands(number("needs")),
            number("p50_ms"),
            number("p99_ms"),
            number("peak_rss_bytes") / f64::from(1 << 20),
        );
    }
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

/// `2250000` as `2,250,000`.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let texts = [0.0, 999.0, 1000.0, 2_250_000.0].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "2,250,000"]);
    }
}
