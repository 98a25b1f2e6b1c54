//! Penalties travel as buckets: dollars rounded up to a power of two (wire
//! chapter §10).

use std::fmt;

/// Ordinal of a bucket, 0 to 27. Ordinals grow with dollars, so comparing
/// ordinals compares penalties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PenaltyBucket(u8);

/// Ordinal of $1; each further bucket doubles.
const ONE_DOLLAR: u8 = 3;

impl PenaltyBucket {
    /// Not given; read as $0.
    pub const UNSPECIFIED: Self = Self(0);
    /// $0.
    pub const ZERO: Self = Self(1);
    /// Up to $0.50.
    pub const HALF_DOLLAR: Self = Self(2);
    /// Above every dollar amount.
    pub const PINNED: Self = Self(27);

    /// Checked conversion from the raw wire number.
    pub const fn from_wire(number: i32) -> Option<Self> {
        if number >= 0 && number <= Self::PINNED.0 as i32 { Some(Self(number as u8)) } else { None }
    }

    /// The wire number.
    pub const fn to_wire(self) -> i32 {
        self.0 as i32
    }

    /// The smallest bucket that holds this many dollars. Anything not comparable
    /// is pinned: the safe side of a mistake is to leave the workload alone.
    pub fn from_dollars(dollars: f64) -> Self {
        (Self::ZERO.0..Self::PINNED.0)
            .map(Self)
            .find(|bucket| dollars <= bucket.dollars())
            .unwrap_or(Self::PINNED)
    }

    /// The upper bound, an over-estimate on purpose.
    pub fn dollars(self) -> f64 {
        match self {
            Self::UNSPECIFIED | Self::ZERO => 0.0,
            Self::HALF_DOLLAR => 0.5,
            Self::PINNED => f64::INFINITY,
            Self(ordinal) => (1u32 << (ordinal - ONE_DOLLAR)).into(),
        }
    }
}

/// The metric label.
impl fmt::Display for PenaltyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UNSPECIFIED => f.write_str("unspecified"),
            Self::PINNED => f.write_str("pinned"),
            bucket => write!(f, "{}", bucket.dollars()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_wire_chapter_holds() {
        for (dollars, bucket, decoded) in [
            (-5.0, 1, 0.0),
            (0.0, 1, 0.0),
            (0.01, 2, 0.5),
            (0.5, 2, 0.5),
            (0.51, 3, 1.0),
            (1.0, 3, 1.0),
            (1.01, 4, 2.0),
            (2.0, 4, 2.0),
            (3.0, 5, 4.0),
            (4.0, 5, 4.0),
            (1000.0, 13, 1024.0),
            (8000.0, 16, 8192.0),
            (8192.0, 16, 8192.0),
            (65536.0, 19, 65536.0),
            (65537.0, 20, 131_072.0),
            (8_388_608.0, 26, 8_388_608.0),
            (8_388_608.01, 27, f64::INFINITY),
            (20_000_000.0, 27, f64::INFINITY),
            (f64::INFINITY, 27, f64::INFINITY),
            (f64::NAN, 27, f64::INFINITY),
            (f64::NEG_INFINITY, 1, 0.0),
        ] {
            let got = PenaltyBucket::from_dollars(dollars);
            assert_eq!((got.to_wire(), got.dollars()), (bucket, decoded), "{dollars} dollars");
        }
    }

    #[test]
    fn labels_are_the_bound() {
        let labels: Vec<String> =
            (0..=27).filter_map(PenaltyBucket::from_wire).map(|b| b.to_string()).collect();
        assert_eq!(labels[..5], ["unspecified", "0", "0.5", "1", "2"]);
        assert_eq!(labels[26..], ["8388608", "pinned"]);
    }

    #[test]
    fn only_28_numbers_are_buckets() {
        assert_eq!(PenaltyBucket::from_wire(-1), None);
        assert_eq!(PenaltyBucket::from_wire(28), None);
        assert_eq!(PenaltyBucket::from_wire(256 + 3), None, "a narrowing cast would alias");
    }
}
