//! What a report says of supply and demand, read once when it arrives: a pass looks at
//! hundreds of thousands of rows, and parses none.

use bigfleet_model::{
    Operator, PenaltyBucket, Quantity, Requirement, Resources, Totals, gate::amount,
};
use bigfleet_wire::v1alpha1 as wire;

/// Requirements of more bytes are not carried through the log: they would be in every
/// replica, in every snapshot.
const MAX_REQUIREMENT_BYTES: usize = 16 << 10;

/// Supply and demand of one shard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Where its provider is; machine ids mean nothing to another one.
    pub provider_address: Box<str>,
    /// What it has.
    pub pools: Box<[Pool]>,
    /// What it lacks, in the order of the report.
    pub shortfalls: Box<[Shortfall]>,
}

/// Machines of one type, zone and capacity type.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Their type.
    pub instance_type: Box<str>,
    /// Their zone.
    pub zone: Box<str>,
    /// The wire's number of the capacity type.
    pub capacity_type: i32,
    /// What one of them holds.
    pub allocatable: Resources,
    /// Those that wait.
    pub idle: u32,
    /// Those that could be bought.
    pub speculative: u32,
    /// Those that work.
    pub configured: u32,
    /// The lowest priority of that work.
    pub min_priority: i32,
    /// The lowest price of interrupting it.
    pub min_interruption_bucket: PenaltyBucket,
}

/// A need that the shard cannot meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// What machines must be.
    pub requirements: Box<[Requirement]>,
    /// What each must hold.
    pub min_unit: Resources,
    /// What is lacking.
    pub deficit: Totals,
    /// How much it matters.
    pub priority: i32,
    /// For how many cycles it has been lacking.
    pub age_cycles: i32,
    /// What interrupting it would cost.
    pub interruption_bucket: PenaltyBucket,
    /// What a machine must hold to serve it: `min_unit`, and something of everything that
    /// is lacking.
    pub(super) least: Resources,
}

impl Figures {
    /// Of the parts of a report. Rows that mean nothing are left out.
    #[must_use]
    pub fn of(summary: &wire::ShardSummary, shortfalls: &[wire::Shortfall]) -> Self {
        Self {
            provider_address: summary.provider_address.as_str().into(),
            pools: summary.pools.iter().filter_map(Pool::of).collect(),
            shortfalls: shortfalls.iter().filter_map(Shortfall::of).collect(),
        }
    }
}

impl Pool {
    fn of(row: &wire::PoolRow) -> Option<Self> {
        let count = |number: i32| u32::try_from(number).unwrap_or_default();
        Some(Self {
            instance_type: row.instance_type.as_str().into(),
            zone: row.zone.as_str().into(),
            capacity_type: row.capacity_type,
            // Supply is rounded down.
            allocatable: one_machine(row.allocatable.as_ref(), Quantity::millis_floor)?,
            idle: count(row.idle),
            speculative: count(row.speculative),
            configured: count(row.configured),
            min_priority: row.min_priority,
            min_interruption_bucket: PenaltyBucket::from_wire(row.min_interruption_bucket)?,
        })
    }
}

impl Shortfall {
    fn of(row: &wire::Shortfall) -> Option<Self> {
        let requirement = |one: &wire::NodeSelectorRequirement| {
            let (key, values) = (one.key.clone(), one.values.clone());
            Some(Requirement { key, operator: Operator::from_wire(one.operator)?, values })
        };
        let requirements: Option<Box<[Requirement]>> =
            row.requirements.iter().map(requirement).collect();
        // Demand is rounded up.
        let min_unit = one_machine(row.min_unit.as_ref(), Quantity::millis_ceil)?;
        let deficit = row.deficit.iter().flat_map(|lacking| &lacking.resources);
        let deficit = deficit.map(|(name, text)| {
            let (dimension, quantity) = amount(name, text).ok()?;
            Some((dimension, quantity.millis_ceil()))
        });
        let deficit: Totals = deficit.collect::<Option<Vec<_>>>()?.into_iter().collect();
        let something: Resources = deficit.iter().map(|(dimension, _)| (dimension, 1)).collect();
        Some(Self {
            requirements: requirements?,
            least: min_unit.max(&something),
            min_unit,
            deficit,
            priority: row.priority,
            age_cycles: row.age_cycles,
            interruption_bucket: PenaltyBucket::from_wire(row.interruption_penalty_bucket)?,
        })
    }

    /// Whether all of its machines must be of one domain. It never crosses shards.
    #[must_use]
    pub fn stays_together(&self) -> bool {
        self.requirements.iter().any(|one| one.operator == Operator::Same)
    }

    /// Whether its requirements are too large to be replicated.
    pub(super) fn is_unwieldy(&self) -> bool {
        let bytes = |one: &Requirement| {
            one.key.len() + one.values.iter().map(|value| value.len() + 4).sum::<usize>() + 40
        };
        self.requirements.iter().map(bytes).sum::<usize>() > MAX_REQUIREMENT_BYTES
    }
}

/// Resources of one machine; `None` if they are no quantities or past 64 bits.
fn one_machine(
    resources: Option<&wire::Resources>,
    millis: fn(Quantity) -> i128,
) -> Option<Resources> {
    let entries = resources.into_iter().flat_map(|one| &one.resources);
    let read = |(name, text): (&String, &String)| {
        let (dimension, quantity) = amount(name, text).ok()?;
        Some((dimension, i64::try_from(millis(quantity)).ok()?))
    };
    Some(entries.map(read).collect::<Option<Vec<_>>>()?.into_iter().collect())
}
