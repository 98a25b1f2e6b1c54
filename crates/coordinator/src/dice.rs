//! SplitMix64: small, seeded, for names and for spreading timers, never for secrets.

/// A row of numbers that its seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Always the same numbers.
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// The next number as an instruction's or a transfer's id: 16 hex digits.
    pub(crate) fn id(&mut self) -> String {
        format!("{:016x}", self.next())
    }
}
