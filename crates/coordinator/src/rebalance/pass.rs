//! One pass: shortfalls in order, tier by tier.

use bigfleet_model::{PenaltyBucket, Resources, Totals};
use smallvec::SmallVec;

use super::{
    Pass, Picture, Set, Settings, Skip,
    bits::Bits,
    classes::Classes,
    cooling::Resting,
    donors::Donors,
    fleet::Fleet,
    lacking::{self, ESCALATED_AFTER, Lacking, machines},
    shelf::{Shelf, Yielding},
};
use crate::{
    dice::Dice,
    state::{
        Command, MAX_TRANSFER_MACHINES, TransferKind, TransferPhase, TransferRequest,
        TransferRequirement,
    },
};

/// A shortfall older than this many cycles may cost others their work.
const DRAINS_AFTER: i32 = 12;
/// Most machines that one donor drains for one pass.
const MAX_DRAINED: u32 = 10;
/// Most transfers at a time.
const MAX_TRANSFERS: usize = 1_000;
/// Most machines in them.
const MAX_MACHINES: u64 = 10_000;

/// What is decided, and what is left to decide with.
struct Run<'a, 'b> {
    settings: &'b Settings,
    fleet: &'b Fleet<'a>,
    classes: &'b Classes<'a>,
    /// Cells that rest between two shards, the lesser first.
    resting: Set<(u32, u32, u32)>,
    dice: &'b mut Dice,
    /// Machines that this pass may still move.
    budget: u64,
    /// Transfers, and machines in them, that there may still be.
    room: (usize, u64),
    /// By shard: whether this pass drains it.
    drained: Vec<bool>,
    /// Shapes for which no work is left that yields to this priority and bucket.
    hopeless: Set<(u32, i32, PenaltyBucket)>,
    pass: Pass,
}

/// A shortfall at work.
struct Want<'a> {
    lacking: &'a Lacking<'a>,
    /// What it lacked when the pass came to it.
    start: &'a Totals,
    /// What it lacks still, once something was begun for it.
    left: Option<Totals>,
    /// Something went to it, or will when a pair has rested.
    offered: bool,
    /// Each reason once.
    why: SmallVec<[Skip; 4]>,
}

impl Want<'_> {
    /// Whether so many machines finish it, or close a share that is worth a move.
    fn closed_by(&self, gives: u32, allocatable: &Resources, settings: &Settings) -> bool {
        let gives = u64::from(gives);
        gives >= machines(self.left(), allocatable)
            || gives as f64 >= settings.min_benefit * machines(self.start, allocatable) as f64
    }

    fn left(&self) -> &Totals {
        self.left.as_ref().unwrap_or(self.start)
    }

    fn skip(&mut self, why: Skip) {
        if !self.why.contains(&why) {
            self.why.push(why);
        }
    }
}

/// Why nothing more is begun for anybody.
struct Full(Skip);

pub(super) fn pass<'r>(
    settings: &Settings,
    resting: impl Iterator<Item = &'r Resting>,
    picture: &Picture,
    dice: &mut Dice,
) -> Pass {
    let fleet = Fleet::of(picture);
    let mut classes = Classes::of(fleet.iter().map(|(_, figures)| figures));
    let mut pass = Pass::default();
    let mut wanted = vec![Bits::new(classes.len()); fleet.len()];
    let mut lacking = Vec::new();
    for (shard, figures) in fleet.iter() {
        for shortfall in &figures.shortfalls {
            let shape = classes.shape(figures, shortfall);
            wanted[shard as usize].add(classes.serving(shape));
            if shortfall.age_cycles <= ESCALATED_AFTER {
                continue;
            }
            match () {
                () if shortfall.stays_together() => skip(&mut pass, Skip::Same),
                () if shortfall.is_unwieldy() => skip(&mut pass, Skip::TooLarge),
                () => lacking.push(Lacking::new(shard, shape, shortfall)),
            }
        }
    }
    lacking::in_order(&mut lacking);
    let on_the_way = lacking::on_the_way(picture, &fleet, &classes, &lacking);
    let mut donors = Donors::of(picture, &fleet, &classes, &wanted, settings);
    let mut run = Run {
        settings,
        fleet: &fleet,
        classes: &classes,
        resting: numbered(resting, &fleet, &classes),
        dice,
        budget: u64::from(settings.max_machines),
        room: room(picture),
        drained: vec![false; fleet.len()],
        hopeless: Set::default(),
        pass,
    };
    for (at, one) in lacking.iter().enumerate() {
        let start = on_the_way.get(&at).unwrap_or(&one.shortfall.deficit);
        if start.is_zero() {
            skip(&mut run.pass, Skip::OnTheWay);
            continue;
        }
        let (left, why) = (None, SmallVec::new());
        let mut want = Want { lacking: one, start, left, offered: false, why };
        if let Err(Full(why)) = run.serve(&mut want, &mut donors) {
            let rest = (lacking.len() - at) as u64;
            *run.pass.skipped.entry(why).or_default() += rest;
            break;
        }
        match want.left().is_zero() {
            true => {}
            false if want.why.is_empty() => skip(&mut run.pass, Skip::NoDonor),
            false => want.why.into_iter().for_each(|why| skip(&mut run.pass, why)),
        }
    }
    run.pass
}

fn skip(pass: &mut Pass, why: Skip) {
    *pass.skipped.entry(why).or_default() += 1;
}

/// What there may still be of transfers and of machines in them.
fn room(picture: &Picture) -> (usize, u64) {
    let machines = picture.transfers.values().map(|transfer| match transfer.phase {
        TransferPhase::Releasing => u64::try_from(transfer.request.count).unwrap_or_default(),
        TransferPhase::Moved => transfer.machine_ids.len() as u64,
    });
    let transfers = MAX_TRANSFERS.saturating_sub(picture.transfers.len());
    (transfers, MAX_MACHINES.saturating_sub(machines.sum()))
}

fn numbered<'r>(
    resting: impl Iterator<Item = &'r Resting>,
    fleet: &Fleet<'_>,
    classes: &Classes<'_>,
) -> Set<(u32, u32, u32)> {
    let number = |one: &Resting| {
        let (lesser, greater) = (fleet.number(&one.pair[0])?, fleet.number(&one.pair[1])?);
        let provider = &*fleet.figures(lesser).provider_address;
        let cell = classes.cell_of((provider, &one.instance_type, &one.zone))?;
        Some((lesser, greater, cell))
    };
    resting.filter_map(number).collect()
}

impl Run<'_, '_> {
    fn serve(&mut self, want: &mut Want<'_>, donors: &mut Donors) -> Result<(), Full> {
        self.offers(want, &mut donors.idle, TransferKind::Idle)?;
        if !want.left().is_zero() && self.settings.max_tier >= 2 {
            self.offers(want, &mut donors.speculative, TransferKind::Speculative)?;
        }
        let drains = self.settings.max_tier >= 3
            && want.lacking.shortfall.age_cycles > DRAINS_AFTER
            && !want.offered;
        if !want.left().is_zero() && drains {
            self.drains(want, &mut donors.yielding)?;
        }
        Ok(())
    }

    /// Tiers 1 and 2: cell by cell, in each whoever has most.
    fn offers(
        &mut self,
        want: &mut Want<'_>,
        shelf: &mut Shelf,
        kind: TransferKind,
    ) -> Result<(), Full> {
        let classes = self.classes;
        let serving = classes.serving(want.lacking.shape);
        let Some(reach) = shelf.reach(classes, want.lacking.shape) else { return Ok(()) };
        if !want.closed_by(reach.surplus, &reach.allocatable, self.settings) {
            want.skip(Skip::MinBenefit);
            return Ok(());
        }
        let mut next = serving.next_of_both(&shelf.stocked, 0);
        while let Some(first) = next {
            // Classes of the cell, each with its next offer.
            let mut heads: SmallVec<[(usize, usize); 4]> = SmallVec::new();
            while let Some(class) = next.filter(|class| classes.cell(*class) == classes.cell(first))
            {
                heads.push((class, shelf.first(class)));
                next = serving.next_of_both(&shelf.stocked, class + 1);
            }
            while let Some((class, at)) = best(&mut heads, shelf) {
                let Some(offer) = shelf.get(class, at).cloned() else { continue };
                let allocatable = classes.classes[class].allocatable;
                if !want.closed_by(offer.surplus, allocatable, self.settings) {
                    // Nor do those after it, who have less.
                    want.skip(Skip::MinBenefit);
                    heads.retain(|(other, _)| *other != class);
                    continue;
                }
                if offer.left == 0 {
                    continue;
                }
                if !want.closed_by(offer.left, allocatable, self.settings) {
                    want.skip(Skip::MinBenefit);
                    continue;
                }
                if self.rests(offer.shard, want.lacking.shard, class) {
                    // It is worth waiting for: nobody's work ends meanwhile.
                    want.offered = true;
                    want.skip(Skip::Cooldown);
                    continue;
                }
                let need = machines(want.left(), allocatable);
                let most = need.min(u64::from(offer.left)).min(MAX_TRANSFER_MACHINES as u64);
                let count = self.begin(want, (offer.shard, class), kind, most)?;
                shelf.take(class, at, count);
                if want.left().is_zero() {
                    return Ok(());
                }
                if most == MAX_TRANSFER_MACHINES as u64 && offer.left > count {
                    // There is more where that came from, once the pair has rested.
                    want.skip(Skip::Cooldown);
                }
            }
        }
        Ok(())
    }

    /// Tier 3: cheap work yields to dear, a little of each donor.
    fn drains(&mut self, want: &mut Want<'_>, yielding: &mut Yielding) -> Result<(), Full> {
        let (classes, shortfall) = (self.classes, want.lacking.shortfall);
        let worth = (shortfall.priority, shortfall.interruption_bucket);
        let key = (want.lacking.shape, worth.0, worth.1);
        if !yielding.yields(classes, want.lacking.shape, worth) || self.hopeless.contains(&key) {
            return Ok(());
        }
        let mut hopeless = true;
        let serving = classes.serving(want.lacking.shape);
        let mut next = serving.next_of_both(&yielding.stocked, 0);
        while let Some(class) = next {
            for victims in yielding.below(class, shortfall.priority) {
                let dear = victims.min_bucket >= shortfall.interruption_bucket;
                if dear || self.drained[victims.shard as usize] {
                    continue;
                }
                hopeless = false;
                if self.rests(victims.shard, want.lacking.shard, class) {
                    want.skip(Skip::Cooldown);
                    continue;
                }
                let need = machines(want.left(), classes.classes[class].allocatable);
                let share = victims.configured.div_ceil(100).min(MAX_DRAINED);
                let most = need.min(u64::from(share));
                self.begin(want, (victims.shard, class), TransferKind::Drain, most)?;
                self.drained[victims.shard as usize] = true;
                if want.left().is_zero() {
                    return Ok(());
                }
            }
            next = serving.next_of_both(&yielding.stocked, class + 1);
        }
        if hopeless {
            self.hopeless.insert(key);
        }
        Ok(())
    }

    fn rests(&self, one: u32, other: u32, class: usize) -> bool {
        let (lesser, greater) = (one.min(other), one.max(other));
        self.resting.contains(&(lesser, greater, self.classes.cell(class)))
    }

    /// Proposes a transfer of at most so many machines; how many they are.
    fn begin(
        &mut self,
        want: &mut Want<'_>,
        (donor, class): (u32, usize),
        kind: TransferKind,
        most: u64,
    ) -> Result<u32, Full> {
        if self.budget == 0 {
            return Err(Full(Skip::Budget));
        }
        if self.room.0 == 0 || self.room.1 == 0 {
            return Err(Full(Skip::Limit));
        }
        let count = most.min(self.budget).min(self.room.1);
        self.budget -= count;
        if count < most {
            want.skip(if self.budget == 0 { Skip::Budget } else { Skip::Limit });
        }
        self.room = (self.room.0 - 1, self.room.1 - count);
        let class_of = self.classes.classes[class];
        let shortfall = want.lacking.shortfall;
        let requirements = shortfall.requirements.iter().map(|one| TransferRequirement {
            key: one.key.clone(),
            operator: one.operator.to_wire(),
            values: one.values.clone(),
        });
        let (preemptor_priority, preemptor_penalty_bucket) = match kind {
            TransferKind::Drain => (shortfall.priority, shortfall.interruption_bucket.to_wire()),
            TransferKind::Idle | TransferKind::Speculative => (0, 0),
        };
        let request = TransferRequest {
            capacity_type: class_of.capacity_type,
            count: i32::try_from(count).unwrap_or(i32::MAX),
            instance_type: class_of.instance_type.to_owned(),
            min_unit: shortfall.min_unit.to_wire(),
            preemptor_penalty_bucket,
            preemptor_priority,
            requirements: requirements.collect(),
            zone: class_of.zone.to_owned(),
        };
        self.pass.begin.push(Command::BeginTransfer {
            id: self.dice.id().as_str().into(),
            kind,
            from: self.fleet.id(donor).clone(),
            to: self.fleet.id(want.lacking.shard).clone(),
            request,
        });
        // More of the same between these two waits until this shows.
        let (one, other) = (donor.min(want.lacking.shard), donor.max(want.lacking.shard));
        self.resting.insert((one, other, self.classes.cell(class)));
        let left = want.left.get_or_insert_with(|| want.start.clone());
        lacking::reduce(left, class_of.allocatable, count);
        want.offered = true;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

/// Whoever has most, then the least name; its place in its class.
fn best(heads: &mut SmallVec<[(usize, usize); 4]>, shelf: &Shelf) -> Option<(usize, usize)> {
    heads.retain(|(class, at)| shelf.get(*class, *at).is_some());
    let order = |(class, at): &&mut (usize, usize)| {
        shelf.get(*class, *at).map(|offer| (std::cmp::Reverse(offer.surplus), offer.shard))
    };
    let head = heads.iter_mut().min_by_key(order)?;
    let found = *head;
    head.1 += 1;
    Some(found)
}
