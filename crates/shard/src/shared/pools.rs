//! What a shard could lend, counted by kind of machine (coordinator chapter §3, §9).

use std::collections::BTreeMap;

use bigfleet_engine::MachineView;
use bigfleet_model::{CapacityType, MachineState, PenaltyBucket};
use bigfleet_wire::v1alpha1 as wire;

use super::SharedSide;
use crate::holdings::may_be_lent;

/// So many rows are reported, the largest.
const MOST: usize = 256;
/// Machines counted in one hold of the engine, so that a cycle waits for little.
const CHUNK: usize = 4096;

type Kind = (String, String, CapacityType);

impl SharedSide {
    /// Machines of our own domains by type, zone and capacity type.
    pub async fn pools(&self) -> Vec<wire::PoolRow> {
        let in_force = self.shared.in_force();
        let mut pools: BTreeMap<Kind, wire::PoolRow> = BTreeMap::new();
        let mut last: Option<String> = None;
        let connected = self.shard.sessions.connected();
        loop {
            let decider = self.shard.decider.read().await;
            let views = decider.engine.views_after(last.as_deref()).take(CHUNK);
            let mut counted = 0;
            let mut after = None;
            for view in views {
                counted += 1;
                after = Some(view.id());
                let ownership = &in_force.ownership;
                let stays = ownership.is_away(view.id())
                    || !may_be_lent(view.id())
                    || self.shared.quota().keeps(&view, self.shared.knows_domains());
                if ownership.is_home(view.class()) && !stays {
                    let class = view.class();
                    let engine = &decider.engine;
                    // As victims are chosen.
                    let yields = view.cluster().is_none_or(|cluster| {
                        engine.is_ready(cluster) && connected.binary_search(cluster).is_ok()
                    });
                    let kind =
                        (class.instance_type.clone(), class.zone.clone(), class.capacity_type);
                    let row = pools.entry(kind).or_insert_with_key(|kind| row(kind, &view));
                    count(row, &view, yields);
                }
            }
            last = after.map(str::to_owned);
            if counted < CHUNK {
                break;
            }
        }
        let size = |row: &wire::PoolRow| row.idle + row.speculative + row.configured;
        let mut rows: Vec<wire::PoolRow> =
            pools.into_values().filter(|row| size(row) > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(size(row)));
        rows.truncate(MOST);
        rows
    }
}

fn row((instance_type, zone, capacity): &Kind, view: &MachineView<'_>) -> wire::PoolRow {
    let class = view.class();
    let known =
        if class.allocatable.text().is_empty() { &class.resources } else { &class.allocatable };
    wire::PoolRow {
        instance_type: instance_type.clone(),
        zone: zone.clone(),
        capacity_type: capacity.to_wire(),
        allocatable: Some(wire::Resources { resources: known.text().clone() }),
        min_priority: i32::MAX,
        min_interruption_bucket: PenaltyBucket::PINNED.to_wire(),
        ..wire::PoolRow::default()
    }
}

fn count(row: &mut wire::PoolRow, view: &MachineView<'_>, yields: bool) {
    match view.state() {
        MachineState::Idle => row.idle += 1,
        MachineState::Speculative => row.speculative += 1,
        MachineState::Configured if yields => {
            row.configured += 1;
            // What nothing is known of is not offered.
            if let Some(stamp) = view.stamp() {
                let priority = stamp.priority.unwrap_or(i32::MIN);
                let bucket = PenaltyBucket::from_dollars(stamp.interruption).to_wire();
                row.min_priority = row.min_priority.min(priority);
                row.min_interruption_bucket = row.min_interruption_bucket.min(bucket);
            }
        }
        _ => {}
    }
}
