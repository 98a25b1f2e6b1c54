//! What donors offer, by class.

use std::cmp::Reverse;

use bigfleet_model::{PenaltyBucket, Resources};

use super::{Map, bits::Bits, classes::Classes};

/// Machines of one row that could go.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// Whose.
    pub(super) shard: u32,
    /// How many when the pass began: what rows are ordered by.
    pub(super) surplus: u32,
    /// How many are not promised yet.
    pub(super) left: u32,
}

/// Offers of one kind.
#[derive(Debug)]
pub(super) struct Shelf {
    /// By class; most first, then by shard.
    offers: Vec<Vec<Offer>>,
    /// By class: how many at the front have nothing left.
    spent: Vec<usize>,
    /// Classes that have something left.
    pub(super) stocked: Bits,
    /// By shape: what no offer to it exceeds.
    reach: Map<u32, Reach>,
}

/// More than any one offer to shortfalls of a shape, when the pass began: what this
/// would not do for, none of them does.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub(super) surplus: u32,
    pub(super) allocatable: Resources,
}

impl Shelf {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            offers: vec![Vec::new(); classes],
            spent: vec![0; classes],
            stocked: Bits::new(classes),
            reach: Map::default(),
        }
    }

    /// What no offer to shortfalls of this shape exceeds; none if there is no offer.
    pub(super) fn reach(&mut self, classes: &Classes<'_>, shape: u32) -> Option<&Reach> {
        let Self { offers, stocked, reach, .. } = self;
        let serving = classes.serving(shape);
        let mut next = serving.next_of_both(stocked, 0);
        next?;
        let found = reach.entry(shape).or_insert_with(|| {
            let mut reach = Reach { surplus: 0, allocatable: Resources::zero() };
            while let Some(class) = next {
                let surplus = offers[class].first().map_or(0, |offer| offer.surplus);
                reach.surplus = reach.surplus.max(surplus);
                reach.allocatable = reach.allocatable.max(classes.classes[class].allocatable);
                next = serving.next_of_both(stocked, class + 1);
            }
            reach
        });
        Some(found)
    }

    pub(super) fn put(&mut self, class: usize, shard: u32, surplus: u32) {
        if surplus > 0 {
            self.offers[class].push(Offer { shard, surplus, left: surplus });
            self.stocked.set(class);
        }
    }

    pub(super) fn sort(&mut self) {
        for offers in &mut self.offers {
            offers.sort_unstable_by_key(|offer| (Reverse(offer.surplus), offer.shard));
        }
    }

    /// Where the offers of a class begin that have something left.
    pub(super) fn first(&self, class: usize) -> usize {
        self.spent[class]
    }

    pub(super) fn get(&self, class: usize, at: usize) -> Option<&Offer> {
        self.offers[class].get(at)
    }

    /// Promises machines of an offer.
    pub(super) fn take(&mut self, class: usize, at: usize, count: u32) {
        let offers = &mut self.offers[class];
        offers[at].left -= count;
        let spent = &mut self.spent[class];
        while offers.get(*spent).is_some_and(|offer| offer.left == 0) {
            *spent += 1;
        }
        if *spent == offers.len() {
            self.stocked.clear(class);
        }
    }
}

/// Work of one row that may yield.
#[derive(Clone, Debug)]
pub(super) struct Victims {
    pub(super) shard: u32,
    pub(super) configured: u32,
    pub(super) min_priority: i32,
    pub(super) min_bucket: PenaltyBucket,
}

/// Priorities and the cheapest bucket of all work up to each: where it falls.
type Stairs = Vec<(i32, PenaltyBucket)>;

/// Work that may yield, by class; the least important first.
#[derive(Debug)]
pub(super) struct Yielding {
    victims: Vec<Vec<Victims>>,
    pub(super) stocked: Bits,
    /// By shape: of all classes that could serve it, when the pass began.
    stairs: Map<u32, Stairs>,
}

impl Yielding {
    pub(super) fn new(classes: usize) -> Self {
        let victims = vec![Vec::new(); classes];
        Self { victims, stocked: Bits::new(classes), stairs: Map::default() }
    }

    pub(super) fn put(&mut self, class: usize, victims: Victims) {
        if victims.configured > 0 {
            self.victims[class].push(victims);
            self.stocked.set(class);
        }
    }

    pub(super) fn sort(&mut self) {
        for victims in &mut self.victims {
            victims.sort_unstable_by_key(|one| {
                (one.min_priority, one.min_bucket, Reverse(one.configured), one.shard)
            });
        }
    }

    /// Whether there is work below a priority and a bucket in machines that could serve a shape:
    /// a hundred thousand ask, each of whom would else look at every row.
    pub(super) fn yields(
        &mut self,
        classes: &Classes<'_>,
        shape: u32,
        (priority, bucket): (i32, PenaltyBucket),
    ) -> bool {
        let Self { victims, stocked, stairs } = self;
        let stairs = stairs.entry(shape).or_insert_with(|| {
            let serving = classes.serving(shape);
            let mut all = Stairs::new();
            let mut next = serving.next_of_both(stocked, 0);
            while let Some(class) = next {
                falls(
                    &mut all,
                    victims[class].iter().map(|one| (one.min_priority, one.min_bucket)),
                );
                next = serving.next_of_both(stocked, class + 1);
            }
            all.sort_unstable();
            let mut stairs = Stairs::new();
            falls(&mut stairs, all.into_iter());
            stairs
        });
        let below = stairs.partition_point(|(step, _)| *step < priority);
        below.checked_sub(1).is_some_and(|last| stairs[last].1 < bucket)
    }

    /// Those below a priority.
    pub(super) fn below(&self, class: usize, priority: i32) -> &[Victims] {
        let victims = &self.victims[class];
        &victims[..victims.partition_point(|one| one.min_priority < priority)]
    }
}

/// Adds the steps at which the bucket of a list in order falls.
fn falls(stairs: &mut Stairs, list: impl Iterator<Item = (i32, PenaltyBucket)>) {
    let mut least = None;
    for (priority, bucket) in list {
        if least.is_none_or(|least| bucket < least) {
            least = Some(bucket);
            stairs.push((priority, bucket));
        }
    }
}
