//! Kubernetes quantities, exact to the nano-unit (wire chapter §13).

mod parse;
mod print;
mod sum;

use std::{
    cmp::Ordering,
    hash::{Hash, Hasher},
};

pub use parse::ParseQuantityError;
pub use sum::QuantitySum;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Which suffixes a quantity was written with, and prints with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `n u m k M G T P E`, and exponents.
    Decimal,
    /// `Ki Mi Gi Ti Pi Ei`.
    Binary,
}

/// A Kubernetes quantity. Equal quantities may print differently: `1Ki` equals
/// `1024`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    family: Family,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, family: Family::Decimal };

    /// From whole nano-units.
    pub const fn from_nanos(nanos: i128, family: Family) -> Self {
        Self { nanos, family }
    }

    /// From whole milli-units. Saturates where nano-units do not fit `i128`.
    pub const fn from_millis(millis: i128, family: Family) -> Self {
        Self { nanos: millis.saturating_mul(NANOS_PER_MILLI), family }
    }

    /// The value in nano-units.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// The suffixes it prints with.
    pub const fn family(self) -> Family {
        self.family
    }

    /// Below zero.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// In milli-units, rounded up: how demand is read.
    pub const fn millis_ceil(self) -> i128 {
        // Not by multiplying back: past the lowest whole milli-unit that overflows.
        let whole = self.nanos.rem_euclid(NANOS_PER_MILLI) == 0;
        if whole { self.millis_floor() } else { self.millis_floor() + 1 }
    }

    /// In milli-units, rounded down: how supply is read.
    pub const fn millis_floor(self) -> i128 {
        self.nanos.div_euclid(NANOS_PER_MILLI)
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        const EXACT: i128 = 1 << f64::MANTISSA_DIGITS;
        let units = self.nanos / NANOS_PER_UNIT;
        if units * NANOS_PER_UNIT == self.nanos && -EXACT < units && units < EXACT {
            return units as f64;
        }
        // Dividing two rounded doubles would round twice; the parser rounds once.
        format!("{}e-9", self.nanos).parse().unwrap_or(f64::NAN)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}
