//! Reports and what their answers lead to.

use bigfleet_model::{CapacityType, Machine, MachineState, PenaltyBucket, digest};
use bigfleet_shard::{
    Answered,
    holdings::{Assignment, Attempt, Chosen, Event, Selector},
};
use bigfleet_shard_report::shared;
use bigfleet_wire::v1alpha1::{self as wire, coordinator_instruction::Payload};

use super::{Shard, Todo};

impl Shard {
    /// The next report.
    pub fn report(&mut self) -> Option<wire::ShardReport> {
        let held = self.holdings.held().into_iter().flat_map(|held| held.clusters.iter());
        let clusters: std::collections::BTreeSet<_> =
            held.chain(&self.operators).cloned().collect();
        let pools = self.pools();
        let process = self.process.as_mut()?;
        let carried = process.memory.begin();
        process.waits_for = Some(carried.cycle);
        let named = carried.clusters.then(|| clusters.iter().map(ToString::to_string));
        let summary = wire::ShardSummary {
            provider_address: "p:1".into(),
            pools,
            ..wire::ShardSummary::default()
        };
        let report = wire::ShardReport {
            shard_id: self.id.clone(),
            shard_address: format!("{}:1", self.id),
            cycle: carried.cycle,
            shard_epoch: process.epoch,
            summary: Some(summary),
            shortfalls: self.lacks.clone(),
            instruction_acks: carried.acks.clone(),
            observed_term: carried.observed_term,
            cluster_digest: digest::of_set(clusters.iter().map(|cluster| cluster.as_str())),
            cluster_ids: named.into_iter().flatten().collect(),
            fleet_id: carried.fleet_id.clone(),
            instance: carried.instance,
            ..wire::ShardReport::default()
        };
        Some(shared::with_holdings(report, &self.holdings, &carried, process.announced))
    }

    /// What could be lent.
    fn pools(&self) -> Vec<wire::PoolRow> {
        let Some(process) = &self.process else { return Vec::new() };
        let ours = process.desk.values().map(|entry| &entry.record).filter(|machine| {
            process.in_force.is_home(&machine.class) && !process.in_force.is_away(&machine.id)
        });
        let within = self.within_the_share();
        let ours = ours
            .filter(|machine| machine.state != MachineState::Speculative || within(&machine.id));
        let mut pools: Vec<wire::PoolRow> = Vec::new();
        for machine in ours {
            let zone = machine.class.zone.as_str();
            let at = pools.iter().position(|row| row.zone == zone).unwrap_or_else(|| {
                pools.push(row(machine));
                pools.len() - 1
            });
            count(&mut pools[at], machine);
        }
        pools
    }

    /// An answer arrives. A late one is dropped.
    pub fn answered(&mut self, cycle: i64, ack: wire::ReportAck) {
        let Some(process) = self.process.as_mut() else { return };
        if process.waits_for != Some(cycle) {
            return;
        }
        process.waits_for = None;
        match process.memory.receive(ack, drop) {
            Err(_) => self.attempted(Attempt::Missed),
            Ok(obeyed) => {
                process.todo.push_back(Todo::Hear(obeyed.fleet, obeyed.term));
                let assign = obeyed.assignment.map(|one| Todo::Assign(Box::new(one)));
                process.todo.extend(assign);
                let releases = obeyed.releases.into_iter();
                let release = releases.map(|(id, payload)| Todo::Release(id, Box::new(payload)));
                process.todo.extend(release);
                process.todo.push_back(Todo::Attempted(obeyed.attempt));
                self.go_on();
            }
        }
    }

    /// A report came to nothing; `stale`: there is a newer process.
    pub fn missed(&mut self, cycle: i64, stale: bool) {
        let Some(process) = self.process.as_mut() else { return };
        if process.waits_for == Some(cycle) {
            process.waits_for = None;
            process.latched |= stale;
            self.attempted(Attempt::Missed);
        }
    }

    fn attempted(&mut self, attempt: Attempt) {
        let Some(process) = self.process.as_mut() else { return };
        process.opening.attempted(attempt);
    }

    /// The rest of an answer counts for nothing.
    fn refused(&mut self) {
        if let Some(process) = self.process.as_mut() {
            process.todo.clear();
        }
        self.attempted(Attempt::Missed);
    }

    /// Goes on with an answer, up to the next write.
    pub(super) fn go_on(&mut self) {
        loop {
            let Some(process) = self.process.as_mut() else { return };
            if process.writing.is_some() {
                return;
            }
            let Some(todo) = process.todo.pop_front() else { return };
            match todo {
                Todo::Hear(fleet, term) => {
                    if self.take(&Event::Heard { fleet, term }, None).is_err() {
                        self.refused();
                    }
                }
                Todo::Assign(message) => {
                    let assigned = Assignment::try_from(*message).map(Event::Assigned);
                    if !assigned.is_ok_and(|event| self.take(&event, None).is_ok()) {
                        self.refused();
                    }
                }
                Todo::Release(id, payload) => self.release(id, *payload),
                Todo::Attempted(attempt) => self.attempted(attempt),
            }
        }
    }

    fn release(&mut self, id: String, payload: Payload) {
        let (transfer, selector) = match Selector::of(payload) {
            Ok(asked) => asked,
            Err(malformed) => return self.ack(id, Answered::Invalid(malformed)),
        };
        let announced = self.process.as_ref().is_some_and(|process| process.announced);
        let candidates = || self.candidates();
        match self.holdings.choose(&transfer, &selector, announced, candidates) {
            Chosen::These(out) => {
                drop(self.take(&Event::Picked { transfer, out }, Some(id)));
            }
            Chosen::Nothing => self.ack(id, Answered::Nothing),
            Chosen::NotYet => {}
        }
    }
}

fn row(machine: &Machine) -> wire::PoolRow {
    let class = &machine.class;
    let resources = class.resources.text().clone();
    wire::PoolRow {
        instance_type: class.instance_type.clone(),
        zone: class.zone.clone(),
        capacity_type: CapacityType::OnDemand.to_wire(),
        allocatable: Some(wire::Resources { resources }),
        min_priority: i32::MAX,
        min_interruption_bucket: PenaltyBucket::PINNED.to_wire(),
        ..wire::PoolRow::default()
    }
}

fn count(row: &mut wire::PoolRow, machine: &Machine) {
    match machine.state {
        MachineState::Idle => row.idle += 1,
        MachineState::Speculative => row.speculative += 1,
        MachineState::Configured => {
            row.configured += 1;
            if let Some(stamp) = &machine.stamp {
                let bucket = PenaltyBucket::from_dollars(stamp.interruption).to_wire();
                row.min_priority = row.min_priority.min(stamp.priority.unwrap_or(i32::MIN));
                row.min_interruption_bucket = row.min_interruption_bucket.min(bucket);
            }
        }
        _ => {}
    }
}
