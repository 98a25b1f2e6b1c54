//! Resource vectors: whole milli-units over dimensions (engine chapter §1.1).
//!
//! A vector holds its positive dimensions only, sorted; a missing dimension is
//! zero. So equality is equality by value, and zero is the empty vector.

mod store;

use std::{cmp::Ordering, collections::BTreeMap, fmt};

use smallvec::SmallVec;
use store::{Entries, LANES, Lanes, Store};

use crate::{
    dimension::Dimension,
    quantity::{Family, Quantity},
};

/// What a machine has, or one pod needs. In milli-bytes `i64` ends at 8 PiB,
/// enough for any single machine.
pub type Resources = Vector<i64>;

/// Sums over many pods or machines, which pass `i64` in one large cluster.
pub type Totals = Vector<i128>;

/// Milli-units of one dimension.
pub trait Amount: Copy + Ord + Default + Into<i128> + From<i64> {
    /// `max(0, self − other)`, which always fits: it is no more than `self`.
    fn sub_sat(self, other: i128) -> Self;
}

impl Amount for i64 {
    fn sub_sat(self, other: i128) -> Self {
        (i128::from(self).saturating_sub(other).max(0)) as Self
    }
}

impl Amount for i128 {
    fn sub_sat(self, other: i128) -> Self {
        self.saturating_sub(other).max(0)
    }
}

/// See [`Resources`] and [`Totals`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Vector<A: Amount> {
    store: Store<A>,
}

impl<A: Amount> Default for Vector<A> {
    fn default() -> Self {
        Self::zero()
    }
}

impl<A: Amount + fmt::Debug> fmt::Debug for Vector<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<A: Amount> Vector<A> {
    /// No positive dimension.
    pub const fn zero() -> Self {
        Self { store: Store::Inline(Lanes::EMPTY) }
    }

    /// The amount of one dimension, zero if missing.
    pub fn get(&self, dimension: Dimension) -> A {
        match &self.store {
            Store::Inline(lanes) => A::from(lanes.get(dimension)),
            Store::Apart(entries) => entries
                .binary_search_by_key(&dimension, |(known, _)| *known)
                .map_or_else(|_| A::default(), |at| entries[at].1),
        }
    }

    /// Sets one dimension; an amount that is not positive removes it.
    pub fn set(&mut self, dimension: Dimension, amount: A) {
        let mut entries: Entries<A> = self.iter().collect();
        let place = entries.binary_search_by_key(&dimension, |(known, _)| *known);
        match (place, amount > A::default()) {
            (Ok(at), true) => entries[at].1 = amount,
            (Ok(at), false) => drop(entries.remove(at)),
            (Err(at), true) => entries.insert(at, (dimension, amount)),
            (Err(_), false) => {}
        }
        self.store = Store::of(&entries);
    }

    /// The positive dimensions, in no order that means anything.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Dimension, A)> + '_ {
        self.store.iter()
    }

    /// The positive dimensions by name.
    pub fn by_name(&self) -> SmallVec<[(&'static str, A); 4]> {
        let mut named: SmallVec<[_; 4]> =
            self.iter().map(|(dimension, amount)| (dimension.name(), amount)).collect();
        named.sort_unstable_by_key(|(name, _)| *name);
        named
    }

    /// No positive dimension.
    pub fn is_zero(&self) -> bool {
        self.store.len() == 0
    }

    /// Every dimension of `other` is at most that of `self`.
    pub fn covers<B: Amount>(&self, other: &Vector<B>) -> bool {
        if let (Store::Inline(mine), Store::Inline(theirs)) = (&self.store, &other.store) {
            return if mine.has_same_dimensions(theirs) {
                (0..LANES).all(|at| mine.amounts[at] >= theirs.amounts[at])
            } else if mine.len() < theirs.len() {
                // Every dimension of theirs is positive, and one of them is missing.
                false
            } else {
                (0..theirs.len()).all(|at| mine.get(theirs.dimensions[at]) >= theirs.amounts[at])
            };
        }
        other.iter().all(|(dimension, wanted)| self.get(dimension).into() >= wanted.into())
    }

    /// Some dimension of `self` is positive in `other`, too.
    pub fn meets<B: Amount>(&self, other: &Vector<B>) -> bool {
        if let (Store::Inline(mine), Store::Inline(theirs)) = (&self.store, &other.store)
            && mine.has_same_dimensions(theirs)
        {
            return mine.len() > 0;
        }
        self.iter().any(|(dimension, _)| other.get(dimension) > B::default())
    }

    /// Every positive dimension of `other` is positive in `self`, too.
    pub fn spans<B: Amount>(&self, other: &Vector<B>) -> bool {
        if let (Store::Inline(mine), Store::Inline(theirs)) = (&self.store, &other.store)
            && mine.has_same_dimensions(theirs)
        {
            return true;
        }
        other.iter().all(|(dimension, _)| self.get(dimension) > A::default())
    }

    /// Per dimension the larger.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.merge(other, Ord::max);
        result
    }

    /// Combines each dimension of `other` with ours, zero if we lack it. A peer
    /// decides how many those are, so what is new goes in by one merge of sorted
    /// runs: inserting one by one would move the rest each time.
    fn merge<B: Amount>(&mut self, other: &Vector<B>, combine: impl Fn(A, B) -> A) {
        let mut entries: Entries<A> = self.iter().collect();
        let known = entries.len();
        let mut at = 0;
        for (dimension, amount) in other.iter() {
            while at < known && entries[at].0 < dimension {
                at += 1;
            }
            match entries[..known].get_mut(at) {
                Some((mine, sum)) if *mine == dimension => *sum = combine(*sum, amount),
                _ => entries.push((dimension, combine(A::default(), amount))),
            }
        }
        if entries.len() > known {
            entries.sort_by_key(|(dimension, _)| *dimension);
        }
        self.store = Store::of(&entries);
    }

    /// Per dimension `max(0, self − other)`.
    pub fn sub_sat_assign<B: Amount>(&mut self, other: &Vector<B>) {
        if let (Store::Inline(mine), Store::Inline(theirs)) = (&mut self.store, &other.store) {
            if theirs.len() == 0 {
                return;
            }
            for at in 0..mine.len() {
                // Both are positive: no difference leaves the range.
                mine.amounts[at] -= theirs.get(mine.dimensions[at]);
            }
            mine.close_gaps();
            return;
        }
        let less = |(dimension, amount): (Dimension, A)| {
            (dimension, amount.sub_sat(other.get(dimension).into()))
        };
        let mut entries: Entries<A> = self.iter().map(less).collect();
        entries.retain(|(_, amount)| *amount > A::default());
        self.store = Store::of(&entries);
    }

    /// Per dimension `max(0, self − other)`.
    #[must_use]
    pub fn sub_sat<B: Amount>(&self, other: &Vector<B>) -> Self {
        let mut result = self.clone();
        result.sub_sat_assign(other);
        result
    }

    /// The sum.
    #[must_use]
    pub fn add<B: Amount>(&self, other: &Vector<B>) -> Totals {
        let mut result = self.scale(1);
        result.add_assign(other);
        result
    }

    /// `n` times the vector.
    #[must_use]
    pub fn scale(&self, n: u64) -> Totals {
        if n == 0 {
            return Totals::zero();
        }
        let entries: Entries<i128> = self
            .iter()
            .map(|(dimension, amount)| (dimension, amount.into().saturating_mul(i128::from(n))))
            .collect();
        Totals { store: Store::of(&entries) }
    }

    /// A total order by value that is the same in every process: dimension by
    /// dimension in name order, the smaller amount first, a missing one being
    /// zero.
    pub fn cmp_by_name(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (self.by_name(), other.by_name());
        let (mut left, mut right) = (mine.iter().peekable(), theirs.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return Ordering::Equal,
                (Some(_), None) => Ordering::Greater,
                (None, Some(_)) => Ordering::Less,
                // Whoever has the earlier name has more than zero of it.
                (Some((a, x)), Some((b, y))) => b.cmp(a).then(x.cmp(y)),
            };
            if order != Ordering::Equal {
                return order;
            }
            left.next();
            right.next();
        }
    }

    /// As on the wire: name to canonical quantity.
    pub fn to_wire(&self) -> BTreeMap<String, String> {
        self.iter()
            .map(|(dimension, amount)| {
                let family = if dimension.is_bytes() { Family::Binary } else { Family::Decimal };
                let text = Quantity::from_millis(amount.into(), family).to_string();
                (dimension.name().to_owned(), text)
            })
            .collect()
    }
}

impl Totals {
    /// Adds, saturating.
    pub fn add_assign<B: Amount>(&mut self, other: &Vector<B>) {
        if self.add_inline(other) {
            return;
        }
        self.merge(other, |sum, amount| sum.saturating_add(amount.into()));
    }

    /// Adds where nothing but numbers changes; false if more does.
    fn add_inline<B: Amount>(&mut self, other: &Vector<B>) -> bool {
        let (Store::Inline(mine), Store::Inline(theirs)) = (&mut self.store, &other.store) else {
            return false;
        };
        if mine.len() == 0 {
            *mine = *theirs;
            return true;
        }
        if !mine.has_same_dimensions(theirs) {
            return false;
        }
        let mut sums = mine.amounts;
        for (sum, more) in sums.iter_mut().zip(theirs.amounts) {
            let Some(added) = sum.checked_add(more) else { return false };
            *sum = added;
        }
        mine.amounts = sums;
        true
    }
}

impl<A: Amount> FromIterator<(Dimension, A)> for Vector<A> {
    /// The last of several amounts for one dimension stands.
    fn from_iter<I: IntoIterator<Item = (Dimension, A)>>(pairs: I) -> Self {
        let mut entries: Entries<A> = pairs.into_iter().collect();
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Stable, so that of equals the last stays last; `dedup` keeps the first.
            entries.sort_by_key(|(dimension, _)| *dimension);
            entries.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 = next.1;
                }
                same
            });
        }
        entries.retain(|(_, amount)| *amount > A::default());
        Self { store: Store::of(&entries) }
    }
}
