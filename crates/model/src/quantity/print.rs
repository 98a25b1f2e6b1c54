//! Canonical text: no fraction, no plus sign, the largest suffix that leaves an
//! integer. Binary suffixes only for whole values of at least 1024, and only up
//! to 2^63 − 1, where reading them ends: past that a sum would read back smaller
//! than it is.

use std::fmt;

use super::{Family, NANOS_PER_UNIT, Quantity};

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.nanos / NANOS_PER_UNIT;
        let binary = self.family == Family::Binary
            && (1024..=i64::MAX as u128).contains(&whole.unsigned_abs())
            && whole * NANOS_PER_UNIT == self.nanos;
        let (digits, suffix) = if self.nanos == 0 {
            (0, "")
        } else if binary {
            largest_suffix(whole, 1024, &BINARY)
        } else {
            largest_suffix(self.nanos, 1000, &DECIMAL)
        };
        write!(f, "{digits}{suffix}")
    }
}

fn largest_suffix(mut digits: i128, step: i128, suffixes: &[&'static str]) -> (i128, &'static str) {
    let mut place = 0;
    while place + 1 < suffixes.len() && digits % step == 0 {
        digits /= step;
        place += 1;
    }
    (digits, suffixes[place])
}
