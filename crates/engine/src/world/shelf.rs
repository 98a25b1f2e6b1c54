//! Bound machines of one cluster, by class, and which classes those are.

use smallvec::SmallVec;

use crate::handle::{ClassIx, Handle, RunIx};

/// Runs of bound machines of one cluster and class.
#[derive(Clone)]
pub(crate) struct Shelf {
    pub(crate) class: ClassIx,
    pub(crate) runs: SmallVec<[RunIx; 2]>,
}

/// All shelves of a cluster. A shelf stays once it is there: classes come back.
#[derive(Clone, Default)]
pub(crate) struct Shelves {
    /// In number order of their classes.
    rows: Vec<Shelf>,
    /// One bit per class that has a shelf.
    bits: Vec<u64>,
    /// How many bits are set before each word.
    before: Vec<u32>,
}

impl Shelves {
    /// Shelves of classes whose bits are set in `wanted`.
    pub(crate) fn among<'s>(&'s self, wanted: &'s [u64]) -> impl Iterator<Item = &'s Shelf> {
        let words = self.bits.iter().zip(wanted).zip(&self.before);
        words.flat_map(move |((mine, wanted), before)| {
            let mut both = mine & wanted;
            std::iter::from_fn(move || {
                let bit = (both != 0).then(|| both.trailing_zeros())?;
                both &= both - 1;
                let rank = (mine & ((1 << bit) - 1)).count_ones();
                self.rows.get((before + rank) as usize)
            })
        })
    }

    /// All runs.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunIx> {
        self.rows.iter().flat_map(|shelf| shelf.runs.iter().copied())
    }

    /// The runs of a class.
    pub(crate) fn of(&mut self, class: ClassIx) -> &mut SmallVec<[RunIx; 2]> {
        let at = self.rows.partition_point(|shelf| shelf.class < class);
        if self.rows.get(at).is_none_or(|shelf| shelf.class != class) {
            self.rows.insert(at, Shelf { class, runs: SmallVec::new() });
            let word = class.index() / 64;
            if word >= self.bits.len() {
                self.bits.resize(word + 1, 0);
                self.before.resize(word + 1, self.rows.len() as u32 - 1);
            }
            self.bits[word] |= 1 << (class.index() % 64);
            self.before[word + 1..].iter_mut().for_each(|before| *before += 1);
        }
        &mut self.rows[at].runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shelves_are_found_by_the_bits_of_their_classes() {
        let mut shelves = Shelves::default();
        for class in [130, 3, 64, 5, 129, 700] {
            shelves.of(ClassIx::at(class)).push(RunIx::at(class));
        }
        let mut wanted = [0; 3];
        for class in [3, 4, 64, 130] {
            wanted[class / 64] |= 1 << (class % 64);
        }
        let found: Vec<usize> = shelves.among(&wanted).map(|shelf| shelf.runs[0].index()).collect();
        assert_eq!(found, [3, 64, 130]);
    }
}
