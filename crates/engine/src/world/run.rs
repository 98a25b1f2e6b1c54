//! Machines that differ only in id, as one.

/// What a run's machines are to a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RunKind {
    /// Configured or Configuring.
    Bound,
    /// Creating, bought for the need in its stamp.
    Bought,
    /// Idle.
    Idle,
    /// Creating, for nobody knows whom.
    Creating,
    /// Could be bought.
    Speculative,
}

/// Machines of one class, binding and stamp, in id order. Claims take from the
/// front; what is given back is taken again first.
pub(crate) struct Run {
    pub(crate) kind: RunKind,
    pub(crate) class: usize,
    /// A machine of the run, for what they all share.
    pub(crate) sample: usize,
    start: usize,
    len: usize,
    /// Places before this one are claimed, but for the holes.
    next: usize,
    /// Sorted.
    holes: Vec<usize>,
}

impl Run {
    pub(super) fn new(
        kind: RunKind,
        class: usize,
        sample: usize,
        start: usize,
        len: usize,
    ) -> Self {
        Self { kind, class, sample, start, len, next: 0, holes: Vec::new() }
    }

    /// How many are unclaimed.
    pub(crate) fn free(&self) -> usize {
        self.len - self.next + self.holes.len()
    }

    /// The unclaimed machine with `skip` unclaimed ones before it.
    pub(crate) fn nth_free(&self, members: &[usize], skip: usize) -> Option<usize> {
        let place = match self.holes.get(skip) {
            Some(hole) => *hole,
            None => self.next + (skip - self.holes.len()),
        };
        (place < self.len).then(|| members[self.start + place])
    }

    /// Claims the unclaimed machine with `skip` unclaimed ones before it and
    /// returns its place.
    pub(crate) fn take(&mut self, skip: usize) -> usize {
        if skip < self.holes.len() {
            return self.holes.remove(skip);
        }
        let place = self.next + (skip - self.holes.len());
        self.holes.extend(self.next..place);
        self.next = place + 1;
        place
    }

    /// Unclaims the machine at a place.
    pub(crate) fn give_back(&mut self, place: usize) {
        if place + 1 == self.next {
            self.next = place;
            while self.holes.last().is_some_and(|hole| hole + 1 == self.next) {
                self.holes.pop();
                self.next -= 1;
            }
        } else if let Err(at) = self.holes.binary_search(&place) {
            self.holes.insert(at, place);
        }
    }

    pub(crate) fn machine(&self, members: &[usize], place: usize) -> usize {
        members[self.start + place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_take_the_front_and_what_is_given_back_comes_first() {
        let members = [10, 11, 12, 13, 14];
        let mut run = Run::new(RunKind::Idle, 0, 10, 0, 5);
        assert_eq!((run.take(0), run.take(0), run.take(0)), (0, 1, 2));
        run.give_back(0);
        assert_eq!(
            (run.free(), run.nth_free(&members, 0), run.nth_free(&members, 1)),
            (3, Some(10), Some(13))
        );
        assert_eq!(run.nth_free(&members, 3), None);
        run.give_back(2);
        run.give_back(1);
        assert_eq!((run.free(), run.nth_free(&members, 0)), (5, Some(10)));
        assert_eq!(run.take(0), 0);
        assert_eq!((run.take(2), run.free()), (3, 3));
        assert_eq!((run.take(0), run.take(0), run.take(0)), (1, 2, 4));
    }
}
