//! Shortfalls that machines of others may close, and what is on its way to them.

use std::{cmp::Reverse, collections::BTreeMap};

use bigfleet_model::{Requirement, Resources, Totals, gate::amount};

use super::{Figures, Picture, Shortfall, classes::Classes, fleet::Fleet};
use crate::state::{Transfer, TransferPhase, TransferRequirement};

/// A shortfall older than this many cycles may be served by others.
pub(super) const ESCALATED_AFTER: i32 = 5;

/// A shortfall that takes part.
#[derive(Clone, Debug)]
pub(super) struct Lacking<'a> {
    /// More important first, then older. Here, for a sort that went to each shortfall would
    /// mostly wait for memory.
    rank: (Reverse<i32>, Reverse<i32>),
    pub(super) shard: u32,
    pub(super) shape: u32,
    pub(super) shortfall: &'a Shortfall,
}

impl<'a> Lacking<'a> {
    pub(super) fn new(shard: u32, shape: u32, shortfall: &'a Shortfall) -> Self {
        let rank = (Reverse(shortfall.priority), Reverse(shortfall.age_cycles));
        Self { rank, shard, shape, shortfall }
    }
}

/// In the order of a pass: by rank, then by shard and as it was reported, as they come.
pub(super) fn in_order(lacking: &mut [Lacking<'_>]) {
    lacking.sort_by_key(|one| one.rank);
}

/// Machines like this that cover it; all there are, if they lack what it asks for.
pub(super) fn machines(deficit: &Totals, allocatable: &Resources) -> u64 {
    let each = deficit.iter().map(|(dimension, lacking)| {
        // Neither is negative.
        let (lacking, holds) = (lacking.unsigned_abs(), allocatable.get(dimension).unsigned_abs());
        match u64::try_from(lacking) {
            _ if holds == 0 => u64::MAX,
            // Nearly always, and many times as fast.
            Ok(lacking) => lacking.div_ceil(holds),
            Err(_) => u64::try_from(lacking.div_ceil(u128::from(holds))).unwrap_or(u64::MAX),
        }
    });
    each.max().unwrap_or_default()
}

/// Less what so many of these machines hold.
pub(super) fn reduce(deficit: &mut Totals, allocatable: &Resources, count: u64) {
    deficit.sub_sat_assign(&allocatable.scale(count));
}

/// What open transfers leave of shortfalls, by their place in the list; others are as
/// reported. Every machine counts once: first for shortfalls that ask for just what the
/// donor was asked for, then for any that it could serve.
pub(super) fn on_the_way(
    picture: &Picture,
    fleet: &Fleet<'_>,
    classes: &Classes<'_>,
    lacking: &[Lacking<'_>],
) -> BTreeMap<usize, Totals> {
    let mut toward: BTreeMap<u32, (Vec<&Transfer>, Vec<usize>)> = BTreeMap::new();
    for transfer in picture.transfers.values() {
        if let Some(shard) = fleet.number(&transfer.to) {
            toward.entry(shard).or_default().0.push(transfer);
        }
    }
    if toward.is_empty() {
        return BTreeMap::new();
    }
    for (at, one) in lacking.iter().enumerate() {
        if let Some((_, places)) = toward.get_mut(&one.shard) {
            places.push(at);
        }
    }
    let mut left: BTreeMap<usize, Totals> = BTreeMap::new();
    for (shard, (transfers, places)) in toward {
        let figures = fleet.figures(shard);
        for transfer in transfers {
            arrive(transfer, figures, classes, (lacking, &places), &mut left);
        }
    }
    left
}

fn arrive(
    transfer: &Transfer,
    figures: &Figures,
    classes: &Classes<'_>,
    (lacking, places): (&[Lacking<'_>], &[usize]),
    left: &mut BTreeMap<usize, Totals>,
) {
    let request = &transfer.request;
    let mut machines_left = match transfer.phase {
        TransferPhase::Releasing => u64::try_from(request.count).unwrap_or_default(),
        TransferPhase::Moved => transfer.machine_ids.len() as u64,
    };
    let cell = (&*figures.provider_address, &*request.instance_type, &*request.zone);
    let class = classes.find(cell, request.capacity_type);
    let least = min_unit(transfer);
    let allocatable = class.map_or(&least, |class| classes.classes[class].allocatable);
    for exact in [true, false] {
        for at in places {
            let one = &lacking[*at];
            let asked_for = asks_for(transfer, &least, one.shortfall);
            let serves = class.is_some_and(|class| classes.serving(one.shape).has(class));
            if asked_for != exact || !(exact || serves) || machines_left == 0 {
                continue;
            }
            let deficit = left.entry(*at).or_insert_with(|| one.shortfall.deficit.clone());
            let count = machines(deficit, allocatable).min(machines_left);
            reduce(deficit, allocatable, count);
            machines_left -= count;
        }
    }
}

/// What each machine of a transfer holds at least.
fn min_unit(transfer: &Transfer) -> Resources {
    let read = |(name, text): (&String, &String)| {
        let (dimension, quantity) = amount(name, text).ok()?;
        Some((dimension, i64::try_from(quantity.millis_ceil()).ok()?))
    };
    transfer.request.min_unit.iter().filter_map(read).collect()
}

/// Whether the transfer was begun for a shortfall like this.
fn asks_for(transfer: &Transfer, min_unit: &Resources, shortfall: &Shortfall) -> bool {
    let same = |(one, other): (&TransferRequirement, &Requirement)| {
        one.key == other.key
            && one.operator == other.operator.to_wire()
            && one.values == other.values
    };
    let asked = &transfer.request.requirements;
    asked.len() == shortfall.requirements.len()
        && asked.iter().zip(&*shortfall.requirements).all(same)
        && *min_unit == shortfall.min_unit
}
