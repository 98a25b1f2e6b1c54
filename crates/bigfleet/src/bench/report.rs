//! What a person or a later run reads.

use std::fmt::Write;

use super::measure::Measurement;

pub(super) fn json(measured: &[Measurement]) -> String {
    // Plain numbers and names: serialising them cannot fail.
    let mut text = serde_json::to_string_pretty(measured).unwrap_or_default();
    text.push('\n');
    text
}

pub(super) fn table(measured: &[Measurement], baseline: &[Measurement]) -> String {
    let mut rows = vec![
        [
            "SCENARIO",
            "RECORDS",
            "P50",
            "P99",
            "MAX",
            "PER RECORD",
            "x SCAN",
            "ALLOCS/RECORD",
            "PEAK",
        ]
        .map(str::to_owned),
    ];
    for now in measured {
        let before = baseline.iter().find(|other| other.scenario == now.scenario);
        rows.push([
            now.scenario.clone(),
            now.records.to_string(),
            duration(now.p50 as f64),
            duration(now.p99 as f64),
            duration(now.max as f64),
            duration(now.nanos_per_record()),
            compared(now, before, Measurement::scan_ratio),
            compared(now, before, Measurement::allocations_per_record),
            format!("{:.1} MiB", now.peak_bytes as f64 / f64::from(1 << 20)),
        ]);
    }
    aligned(&rows)
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

fn duration(nanos: f64) -> String {
    match nanos {
        ..1e3 => format!("{nanos:.0} ns"),
        ..1e6 => format!("{:.2} µs", nanos / 1e3),
        ..1e9 => format!("{:.2} ms", nanos / 1e6),
        _ => format!("{:.2} s", nanos / 1e9),
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

    fn measurement(p50: u64) -> Measurement {
        Measurement {
            scenario: "s".to_owned(),
            records: 10,
            runs: 1,
            p50,
            p99: p50,
            max: 2_500_000,
            scan_p50: 100,
            allocations: 20,
            allocated_bytes: 1,
            peak_bytes: 3 << 20,
        }
    }

    #[test]
    fn json_reads_back() {
        let read: Vec<Measurement> = serde_json::from_str(&json(&[measurement(5)])).unwrap();
        assert_eq!(read[0].p50, 5);
    }

    #[test]
    fn a_table_tells_the_change_against_its_baseline() {
        let text = table(&[measurement(1_500)], &[measurement(1_000)]);
        assert_eq!(
            text,
            "SCENARIO  RECORDS  P50      P99      MAX      PER RECORD  x SCAN       ALLOCS/RECORD  PEAK\n\
             s         10       1.50 µs  1.50 µs  2.50 ms  150 ns      15.0 (+50%)  2.0 (+0%)      3.0 MiB\n"
        );
    }
}
