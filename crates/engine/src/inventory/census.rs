//! How many machines there are of what, and what they cost.

use std::collections::BTreeMap;

use bigfleet_model::{CapacityType, ClusterId, MachineState, PenaltyBucket};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    engine::Engine,
    handle::{ClassIx, Handle, StampIx},
};

/// Machines, and what those of them with a host cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// All.
    pub machines: usize,
    /// Those with a host.
    pub hosted: usize,
    /// Dollars per hour of those with a host.
    pub price: f64,
}

impl Count {
    fn add(&mut self, machines: u32, hosted: u32, price: f64) {
        self.machines += machines as usize;
        self.hosted += hosted as usize;
        self.price += f64::from(hosted) * price;
    }
}

/// All machines, counted. States are those reported; what there is none of is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    /// By state, capacity type, and the bucket of the interruption penalty in the
    /// stamp; without a stamp that is unspecified.
    pub by_state: BTreeMap<(MachineState, CapacityType, PenaltyBucket), Count>,
    /// By instance type.
    pub by_instance_type: BTreeMap<String, Count>,
    /// By zone.
    pub by_zone: BTreeMap<String, Count>,
    /// Configured machines by cluster.
    pub configured: BTreeMap<ClusterId, usize>,
}

/// Machines that count as one: class, state, bucket.
type Cell = (ClassIx, MachineState, PenaltyBucket);

/// How many there are, and how many of them have a host.
type Tally = HashMap<Cell, [u32; 2], FixedState>;

impl Engine {
    /// Counts all machines, in one pass over their rows.
    pub fn census(&self) -> Census {
        let world = &self.world;
        let mut cells: Vec<(Cell, [u32; 2])> = self.tally_cells().into_iter().collect();
        // Sums of prices depend on the order, and must not on that of a hash map.
        cells.sort_unstable_by_key(|(cell, _)| *cell);
        let mut census = Census::default();
        for ((class, state, bucket), [machines, hosted]) in cells {
            let row = &world.classes[class];
            let add = |count: &mut Count| count.add(machines, hosted, row.price);
            add(census.by_state.entry((state, row.capacity_type(), bucket)).or_default());
            add(census.by_instance_type.entry(row.class.instance_type.clone()).or_default());
            add(census.by_zone.entry(row.class.zone.clone()).or_default());
        }
        let clusters = world.names.clusters.iter().filter(|(_, row)| row.configured > 0);
        census.configured =
            clusters.map(|(_, row)| (row.id.clone(), row.configured as usize)).collect();
        census
    }

    fn tally_cells(&self) -> Tally {
        let world = &self.world;
        let stamps = world.names.stamps.iter();
        let buckets: Vec<PenaltyBucket> =
            stamps.map(|(_, stamp)| PenaltyBucket::from_dollars(stamp.interruption)).collect();
        let bucket = |stamp: Option<StampIx>| {
            stamp.map_or(PenaltyBucket::UNSPECIFIED, |stamp| buckets[stamp.index()])
        };
        let mut tally = Tally::default();
        for (number, row) in world.machines.rows.iter().filter(|(_, row)| !row.removed) {
            let reported = world.machines.reported(number);
            let has_host = match reported.state {
                // The gate of the inventory sees to it.
                MachineState::Speculative | MachineState::Creating => false,
                MachineState::Failed => world.machines.host(number).is_some(),
                _ => true,
            };
            let cell = (row.class, reported.state, bucket(reported.stamp));
            let [machines, hosted] = tally.entry(cell).or_default();
            *machines += 1;
            *hosted += u32::from(has_host);
        }
        tally
    }
}
