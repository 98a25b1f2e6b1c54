//! When a shard that has just been started may act (coordinator chapter §8).

/// After so many reports in a row that came to nothing the shard goes on with its file.
const ATTEMPTS: u32 = 3;

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It came to nothing.
    Missed,
    /// A coordinator said no more than its name, being of a newer generation than the file's
    /// or having had that report before: it is there to be asked again.
    Named,
    /// The report counted, and all of its answer was taken in.
    Answered,
}

/// What the first reports of a process came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// In a row.
    missed: u32,
    open: bool,
}

impl Opening {
    /// Counts a report.
    pub const fn attempted(&mut self, attempt: Attempt) {
        match attempt {
            Attempt::Missed => {
                self.missed += 1;
                self.open |= self.missed >= ATTEMPTS;
            }
            Attempt::Named => self.missed = 0,
            Attempt::Answered => self.open = true,
        }
    }

    /// It was waited for long enough.
    pub const fn give_up(&mut self) {
        self.open = true;
    }

    /// Whether it may act, as far as the coordinator is concerned.
    #[must_use]
    pub const fn is_open(self) -> bool {
        self.open
    }

    /// Reports that came to nothing, as long as that matters.
    #[must_use]
    pub const fn missed(self) -> u32 {
        if self.open { 0 } else { self.missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opens(attempts: &[Attempt]) -> bool {
        let mut opening = Opening::default();
        for attempt in attempts {
            assert!(!opening.is_open(), "{attempts:?} opens early");
            opening.attempted(*attempt);
        }
        opening.is_open()
    }

    #[test]
    fn an_answer_opens_and_so_does_a_silence() {
        use Attempt::{Answered, Missed, Named};
        assert!(opens(&[Answered]));
        assert!(opens(&[Missed, Missed, Answered]));
        assert!(opens(&[Missed, Missed, Missed]));
        assert!(!opens(&[Missed, Missed]));
        assert!(!opens(&[Named, Named, Named, Named]));
        assert!(!opens(&[Missed, Missed, Named, Missed, Missed]), "somebody was there");
        assert!(opens(&[Missed, Missed, Named, Missed, Missed, Missed]));
        assert!(opens(&[Named, Answered]));
    }
}
