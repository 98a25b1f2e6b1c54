//! Sets of small numbers.

/// A set of numbers below a size that all sets of one pass share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits(Box<[u64]>);

impl Bits {
    pub(super) fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)].into())
    }

    pub(super) fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    pub(super) fn clear(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// The first number in both sets that is not below `from`.
    pub(super) fn next_of_both(&self, other: &Self, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for at in from / 64..self.0.len() {
            let word = self.0[at] & other.0[at] & mask;
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_both() {
        let (mut one, mut other) = (Bits::new(200), Bits::new(200));
        for at in [0, 5, 63, 64, 130, 199] {
            one.set(at);
        }
        for at in [5, 64, 65, 199] {
            other.set(at);
        }
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = one.next_of_both(&other, from) {
            found.push(at);
            from = at + 1;
        }
        assert_eq!(found, [5, 64, 199]);
        other.clear(64);
        assert!(!other.has(64) && other.has(65));
        assert_eq!(one.next_of_both(&other, 6), Some(199));
        other.add(&one);
        assert!([0, 5, 63, 64, 65, 130, 199].iter().all(|at| other.has(*at)));
        assert_eq!(Bits::new(0).next_of_both(&Bits::new(0), 0), None);
    }
}
