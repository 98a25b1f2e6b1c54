//! How a vector lies in memory: 32 bytes for what nearly all vectors are, three
//! dimensions at most and every amount within `i64`; the rest out of line.

use smallvec::SmallVec;

use super::Amount;
use crate::dimension::Dimension;

/// Dimensions that fit inside: processor, memory and a device.
pub(super) const LANES: usize = 3;

/// Entries on their way into a vector.
pub(super) type Entries<A> = SmallVec<[(Dimension, A); 4]>;

/// Positive amounts, sorted by dimension. Of the two forms only one can hold a
/// given vector, so that equality is equality by value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Store<A> {
    Inline(Lanes),
    /// More dimensions, or an amount beyond `i64`.
    Apart(Box<[(Dimension, A)]>),
}

/// A lane without a dimension is zero in all parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Lanes {
    pub(super) amounts: [i64; LANES],
    pub(super) dimensions: [Dimension; LANES],
    len: Len,
}

/// An enum, so that the other form of [`Store`] finds room in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
enum Len {
    Zero,
    One,
    Two,
    Three,
}

impl Lanes {
    pub(super) const EMPTY: Self =
        Self { amounts: [0; LANES], dimensions: [Dimension::CPU; LANES], len: Len::Zero };

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn push(&mut self, dimension: Dimension, amount: i64) {
        let at = self.len();
        (self.dimensions[at], self.amounts[at]) = (dimension, amount);
        self.len = match self.len {
            Len::Zero => Len::One,
            Len::One => Len::Two,
            Len::Two | Len::Three => Len::Three,
        };
    }

    pub(super) fn get(&self, dimension: Dimension) -> i64 {
        let amount =
            |at: usize| if self.dimensions[at] == dimension { self.amounts[at] } else { 0 };
        // At most one lane has it; empty ones are zero.
        amount(0) | amount(1) | amount(2)
    }

    pub(super) fn has_same_dimensions(&self, other: &Self) -> bool {
        self.dimensions == other.dimensions && self.len == other.len
    }

    /// Drops lanes that are no longer positive.
    pub(super) fn close_gaps(&mut self) {
        let gaps = self.amounts[..self.len()].iter().any(|amount| *amount <= 0);
        if gaps {
            let mut closed = Self::EMPTY;
            for at in 0..self.len() {
                if self.amounts[at] > 0 {
                    closed.push(self.dimensions[at], self.amounts[at]);
                }
            }
            *self = closed;
        }
    }
}

impl<A: Amount> Store<A> {
    /// Of sorted, positive entries.
    pub(super) fn of(entries: &[(Dimension, A)]) -> Self {
        let mut lanes = Lanes::EMPTY;
        for (at, (dimension, amount)) in entries.iter().enumerate() {
            match i64::try_from((*amount).into()) {
                Ok(amount) if at < LANES => lanes.push(*dimension, amount),
                _ => return Self::Apart(entries.into()),
            }
        }
        Self::Inline(lanes)
    }

    pub(super) fn iter(&self) -> Iter<'_, A> {
        Iter { store: self, at: 0 }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Inline(lanes) => lanes.len(),
            Self::Apart(entries) => entries.len(),
        }
    }
}

pub(super) struct Iter<'s, A> {
    store: &'s Store<A>,
    at: usize,
}

impl<A: Amount> Iterator for Iter<'_, A> {
    type Item = (Dimension, A);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        self.at += 1;
        match self.store {
            Store::Inline(lanes) => {
                (at < lanes.len()).then(|| (lanes.dimensions[at], A::from(lanes.amounts[at])))
            }
            Store::Apart(entries) => entries.get(at).copied(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.store.len().saturating_sub(self.at);
        (left, Some(left))
    }
}

impl<A: Amount> ExactSizeIterator for Iter<'_, A> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_takes_half_a_cache_line() {
        assert_eq!(size_of::<Store<i128>>(), 32);
        assert_eq!(size_of::<Store<i64>>(), 32);
    }

    #[test]
    fn the_form_follows_from_the_value() {
        let large = (Dimension::CPU, i128::from(i64::MAX) + 1);
        assert!(matches!(Store::of(&[large]), Store::Apart(_)));
        let small = (Dimension::CPU, i128::from(i64::MAX));
        assert!(matches!(Store::of(&[small]), Store::Inline(_)));
    }
}
