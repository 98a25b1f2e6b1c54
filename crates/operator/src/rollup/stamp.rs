//! Times of roll-ups.

/// Build times in unix nanoseconds, strictly rising: the shard's answers name a
/// roll-up by its time, whatever the wall clock does.
#[derive(Debug, Default)]
pub struct Stamps {
    last: i64,
}

impl Stamps {
    /// The next time, by a clock that says `now`.
    pub fn next(&mut self, now: i64) -> i64 {
        self.last = now.max(self.last.saturating_add(1));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_rise_although_the_clock_does_not() {
        let mut stamps = Stamps::default();
        let times: Vec<i64> = [5, 5, 3, 9, 9].map(|now| stamps.next(now)).into();
        assert_eq!(times, [5, 6, 7, 9, 10]);
    }
}
