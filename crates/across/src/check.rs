//! The invariants of coordinator chapter §16, as far as they are of one instant.

use std::collections::BTreeMap;

use bigfleet_coordinator::state::Command;
use bigfleet_model::Machine;
use bigfleet_shard::holdings::Key;
use bigfleet_wire::v1alpha1 as wire;

use crate::{
    World,
    step::{is_accepted, is_same},
};

/// Requirements as one text.
pub(crate) fn requirements(all: &[wire::NodeSelectorRequirement]) -> String {
    let text = |one: &wire::NodeSelectorRequirement| {
        format!("{} {} {:?};", one.key, one.operator, one.values)
    };
    all.iter().map(text).collect()
}

impl World {
    /// What is broken, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        for machine in self.provider.machines() {
            self.one_may_mutate(machine)?;
        }
        self.one_holds()?;
        for tier in [Some(&self.tier), self.old.as_ref()].into_iter().flatten() {
            if let Some(broken) = &tier.broken {
                return Err(broken.clone());
            }
        }
        Ok(())
    }

    /// I1, the first half. A shard may mutate what is its own by its file, whether its
    /// process lives or not, and what a call of its would change, whoever sent that.
    fn one_may_mutate(&self, machine: &Machine) -> Result<(), String> {
        let (id, cluster) = (&machine.id, machine.cluster.as_ref());
        let owns = |shard: usize| {
            self.shards[shard].owned.owns(id, machine.state, cluster, &machine.class)
        };
        let reaches = |shard: usize| {
            let mut calls = self.calls.iter().filter(|flying| flying.shard == shard);
            calls.any(|flying| {
                flying.call.machine == *id
                    && flying.answer.is_none()
                    && self.provider.would_start(&flying.call)
            })
        };
        let mut first = None;
        for shard in 0..self.shards.len() {
            if !(owns(shard) || reaches(shard)) {
                continue;
            }
            if let Some(other) = first.replace(shard) {
                let how = |shard: usize| (shard, owns(shard), reaches(shard));
                return Err(format!(
                    "I1: machine {id}, {:?} of {cluster:?}: two shards may mutate it \
                     (shard, owns, has a call under way): {:?}, {:?}",
                    machine.state,
                    how(other),
                    how(shard),
                ));
            }
        }
        Ok(())
    }

    /// I1, the second half. What is being released may still be acted on, so that it is
    /// held as well.
    fn one_holds(&self) -> Result<(), String> {
        let mut holders: BTreeMap<Key, usize> = BTreeMap::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let held = shard.holdings.held().into_iter().flat_map(|held| held.iter());
            for key in held.chain(shard.holdings.releasing.iter()) {
                if let Some(other) = holders.insert(key.clone(), number)
                    && other != number
                {
                    return Err(format!("I1: {key:?} is held by s{other} and s{number}"));
                }
            }
        }
        Ok(())
    }

    /// I3: what a donor let go of for a transfer is the same as often as it says so.
    pub(crate) fn same_as_before(
        &mut self,
        shard: usize,
        report: &wire::ShardReport,
    ) -> Result<(), String> {
        for ack in &report.instruction_acks {
            if !is_accepted(ack.outcome) || ack.machine_ids.is_empty() {
                continue;
            }
            let machines = ack.machine_ids.iter().map(|id| id.as_str().into()).collect();
            let key = (shard, ack.instruction_id.clone());
            let first = self.ghost.let_go.entry(key).or_insert_with(|| Clone::clone(&machines));
            if *first != machines {
                return Err(format!(
                    "I3: transfer {} took effect twice on s{shard}: {first:?}, then {machines:?}",
                    ack.instruction_id
                ));
            }
        }
        Ok(())
    }

    /// §8: a shard buys only while fewer machines of its domains are drawn than its share
    /// has, as far as shares are known to it; asked whenever one has bought.
    pub(crate) fn within_its_share(&self, shard: usize, bought: &str) -> Result<(), String> {
        let Some(bought) = self.provider.machine(bought) else { return Ok(()) };
        let past = self.shards[shard].past_its_share(bought, self.provider.machines());
        past.map_or(Ok(()), |broken| Err(format!("quota: {broken}")))
    }

    /// I6: what the leader begins is for something that was lacking and may cross.
    pub(crate) fn crosses(&self, command: &Command) -> Result<(), String> {
        let Command::BeginTransfer { to, request, .. } = command else { return Ok(()) };
        let asked: Vec<wire::NodeSelectorRequirement> = request
            .requirements
            .iter()
            .map(|one| wire::NodeSelectorRequirement {
                key: one.key.clone(),
                operator: one.operator,
                values: one.values.clone(),
            })
            .collect();
        let number = self.shards.iter().position(|shard| *shard.id == **to);
        let lacked = number.and_then(|number| self.ghost.lacked.get(&number));
        let known = lacked.is_some_and(|all| all.contains(&requirements(&asked)));
        if asked.iter().any(|one| is_same(one.operator)) || !known {
            return Err(format!("I6: {command:?} is for a need that must stay together"));
        }
        Ok(())
    }
}
