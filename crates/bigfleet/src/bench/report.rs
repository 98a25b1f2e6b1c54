//! What a person or a later run reads.

use std::fmt::Write;

use super::{
    measure::{Measurement, Report},
    quality::Grade,
    scenario::Scenario,
};

pub(super) fn json(measured: &[Measurement]) -> String {
    // Plain numbers and names: serialising them cannot fail.
    let report = Report { scenarios: measured.to_vec() };
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}

pub(super) fn list(scenarios: &[Scenario]) -> String {
    let rows: Vec<_> =
        scenarios.iter().map(|one| [one.name, one.about].map(str::to_owned)).collect();
    aligned(&rows)
}

pub(super) fn table(measured: &[Measurement], baseline: &[Measurement]) -> String {
    let header = [
        "SCENARIO",
        "VARIANT",
        "MACHINES",
        "NEEDS",
        "P50",
        "P99",
        "MAX",
        "PER RECORD",
        "x SCAN",
        "ALLOCS/CYCLE",
        "BYTES/CYCLE",
        "INSTRUCTIONS",
        "PEAK",
        "B/MACHINE",
    ];
    if measured.is_empty() {
        return String::new();
    }
    let mut rows = vec![header.map(str::to_owned)];
    for now in measured {
        let before = baseline.iter().find(|other| other.is_same_as(now));
        rows.push([
            now.name.clone(),
            now.variant.clone(),
            now.machines.to_string(),
            now.needs.to_string(),
            duration(now.p50_ms),
            duration(now.p99_ms),
            duration(now.max_ms),
            duration(now.p50_ms / now.records().max(1) as f64),
            compared(now, before, |one| one.scan_ratio),
            compared(now, before, |one| one.allocs_per_cycle),
            mebibytes(now.bytes_per_cycle),
            now.instructions.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            mebibytes(now.peak_rss_bytes as f64),
            format!("{:.0}", now.bytes_per_machine),
        ]);
    }
    aligned(&rows)
}

/// How much longer a cycle may take with twice the machines.
const GROWTH: f64 = 1.2;
/// How long a cycle may take in which nothing has changed.
const QUIET_MS: f64 = 0.1;

const fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "FAILS" }
}

/// How the cycle grows with the machines, where `growth` was measured. Small
/// times of several worlds are compared, so it is their quickest tenth.
pub(super) fn growth(measured: &[Measurement]) -> String {
    let grown =
        |one: &&Measurement| one.name.starts_with("growth-") && one.variant == "incremental";
    let grown: Vec<_> = measured.iter().filter(grown).collect();
    let mut text = String::new();
    for pair in grown.windows(2) {
        let machines = pair[1].machines as f64 / pair[0].machines as f64;
        let time = pair[1].p10_ms / pair[0].p10_ms;
        let _ = writeln!(
            text,
            "growth: {} machines, {machines:.1} x as many, take {time:.2} x the time; bar {GROWTH}: {}",
            pair[1].machines,
            verdict(time <= GROWTH)
        );
    }
    text
}

/// How long nothing takes, where that was measured.
pub(super) fn quiet(measured: &[Measurement]) -> String {
    let mut text = String::new();
    for one in measured.iter().filter(|one| one.variant == "quiet") {
        let _ = writeln!(
            text,
            "quiet: {} takes {} when nothing has changed; bar {}: {}",
            one.name,
            duration(one.p50_ms),
            duration(QUIET_MS),
            verdict(one.p50_ms <= QUIET_MS)
        );
    }
    text
}

/// The figures that have bars.
pub(super) fn grades(grades: &[Grade]) -> String {
    if grades.is_empty() {
        return String::new();
    }
    let mut rows = vec![["FIGURE", "FOUND", "BAR", ""].map(str::to_owned)];
    for grade in grades {
        let holds = grade.bar.as_ref().map_or("", |_| verdict(grade.holds));
        let bar = grade.bar.clone().unwrap_or_default();
        rows.push([grade.what.to_owned(), grade.found.clone(), bar, holds.to_owned()]);
    }
    aligned(&rows)
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

/// The value, and where there is a baseline the change against it.
fn compared(
    now: &Measurement,
    before: Option<&Measurement>,
    value: impl Fn(&Measurement) -> f64,
) -> String {
    let mut text = format!("{:.1}", value(now));
    if let Some(before) = before.map(&value).filter(|before| *before > 0.0) {
        let _ = write!(text, " ({:+.0}%)", (value(now) / before - 1.0) * 100.0);
    }
    text
}

fn duration(millis: f64) -> String {
    match millis {
        ..1e-3 => format!("{:.0} ns", millis * 1e6),
        ..1.0 => format!("{:.2} µs", millis * 1e3),
        ..1e3 => format!("{millis:.2} ms"),
        _ => format!("{:.2} s", millis / 1e3),
    }
}

/// Columns left-aligned, two spaces apart.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(p50_ms: f64, scan_ratio: f64) -> Measurement {
        Measurement {
            name: "s".to_owned(),
            variant: "v".to_owned(),
            threads: 1,
            machines: 6,
            needs: 4,
            cycles: 1,
            p10_ms: p50_ms,
            p50_ms,
            p99_ms: p50_ms,
            max_ms: 2_500.0,
            scan_ratio,
            allocs_per_cycle: 20.0,
            bytes_per_cycle: f64::from(1 << 19),
            peak_rss_bytes: 3 << 20,
            bytes_per_machine: 1.0,
            instructions: None,
        }
    }

    #[test]
    fn a_doubling_and_a_quiet_cycle_are_held_to_their_bars() {
        let grown = |machines, p50_ms| Measurement {
            name: format!("growth-x{machines}"),
            variant: "incremental".to_owned(),
            machines,
            ..measurement(p50_ms, 1.0)
        };
        assert_eq!(
            growth(&[grown(10, 1.0), grown(20, 1.2), grown(40, 1.8)]),
            "growth: 20 machines, 2.0 x as many, take 1.20 x the time; bar 1.2: holds\n\
             growth: 40 machines, 2.0 x as many, take 1.50 x the time; bar 1.2: FAILS\n"
        );
        let still = Measurement { variant: "quiet".to_owned(), ..measurement(0.05, 1.0) };
        assert_eq!(
            quiet(&[still, measurement(0.05, 1.0)]),
            "quiet: s takes 50.00 µs when nothing has changed; bar 100.00 µs: holds\n"
        );
    }

    #[test]
    fn json_reads_back() {
        let report: Report = serde_json::from_str(&json(&[measurement(5.0, 1.0)])).unwrap();
        assert_eq!(report.scenarios[0].p50_ms, 5.0);
    }

    #[test]
    fn a_table_tells_the_change_against_its_baseline() {
        let text = table(&[measurement(1.5, 15.0)], &[measurement(1.0, 10.0)]);
        assert_eq!(
            text,
            "SCENARIO  VARIANT  MACHINES  NEEDS  P50      P99      MAX     PER RECORD  x SCAN       ALLOCS/CYCLE  BYTES/CYCLE  INSTRUCTIONS  PEAK     B/MACHINE\n\
             s         v        6         4      1.50 ms  1.50 ms  2.50 s  150.00 µs   15.0 (+50%)  20.0 (+0%)    0.5 MiB      -             3.0 MiB  1\n"
        );
    }
}
