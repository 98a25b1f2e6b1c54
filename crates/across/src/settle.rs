//! Faults stop and nobody wants anything: everything settles (I9).

use std::time::Duration;

use bigfleet_coordinator::state::{Command, Key as Row, State};
use bigfleet_shard::holdings::{Domain, Key, Keys};

use crate::{Act, Step, World};

/// The last rounds are long: what waits for half an hour is to come to its end.
const ROUNDS: [(u64, usize); 3] = [(10, 10), (130, 4), (1_900, 12)];

impl World {
    /// Everybody lives, every message arrives.
    pub fn settle(&mut self) -> Result<(), String> {
        self.step(Step::EndOld)?;
        for shard in 0..self.shards.len() {
            self.shards[shard].lacks.clear();
            if self.shards[shard].process.as_ref().is_some_and(|process| process.latched) {
                self.step(Step::Crash(shard))?;
            }
            self.step(Step::Start(shard))?;
        }
        for (seconds, rounds) in ROUNDS {
            for _ in 0..rounds {
                self.round()?;
                if self.unsettled().is_none() {
                    return Ok(());
                }
                self.step(Step::Pass(Duration::from_secs(seconds)))?;
                self.round()?;
                self.step(Step::Upkeep)?;
            }
        }
        match self.unsettled() {
            None => Ok(()),
            Some(what) => Err(format!("I9: {what}")),
        }
    }

    /// Everybody does what is due, in turn.
    pub fn round(&mut self) -> Result<(), String> {
        for shard in 0..self.shards.len() {
            self.step(Step::Announce(shard))?;
            self.written(shard)?;
            self.arrive_all()?;
            self.list(shard)?;
            for _ in 0..3 {
                self.step(Step::Tend(shard, false))?;
                self.written(shard)?;
            }
            for machine in self.shards[shard].drains_to_begin() {
                self.step(Step::Act(shard, machine, Act::Drain))?;
            }
            for machine in self.shards[shard].queued() {
                self.step(Step::Send(shard, machine))?;
            }
            self.arrive_all()?;
            self.exchange(shard)?;
        }
        if self.tier.state.recovering() && self.may_confirm() {
            self.step(Step::Commit(Box::new(Command::ConfirmRestore {})))?;
        }
        Ok(())
    }

    /// Every shard has been heard since the restore: an operator's word.
    #[must_use]
    pub fn may_confirm(&self) -> bool {
        self.shards.iter().all(|shard| self.tier.state.adopted(&shard.id))
    }

    fn written(&mut self, shard: usize) -> Result<(), String> {
        while self.shards[shard].is_writing() {
            self.step(Step::Write(shard))?;
        }
        Ok(())
    }

    /// A whole List.
    pub fn list(&mut self, shard: usize) -> Result<(), String> {
        self.step(Step::BeginList(shard))?;
        self.step(Step::Read(shard))?;
        self.step(Step::Merge(shard))
    }

    fn arrive_all(&mut self) -> Result<(), String> {
        while !self.calls.is_empty() {
            self.step(Step::Arrive(0))?;
        }
        for machine in self.machines() {
            if self.is_moving(&machine) {
                self.step(Step::Finish(machine))?;
            }
        }
        Ok(())
    }

    /// A report and its answer, after whatever else was on its way.
    pub fn exchange(&mut self, shard: usize) -> Result<(), String> {
        self.step(Step::Report(shard))?;
        while !self.rpcs.is_empty() {
            self.step(Step::Deliver(0, false))?;
            self.step(Step::Forward(0, false))?;
        }
        self.written(shard)
    }

    /// What has not come to an end.
    #[must_use]
    pub fn unsettled(&self) -> Option<String> {
        let state: &State = &self.tier.state;
        if state.recovering() {
            return Some("the restore is not confirmed".to_owned());
        }
        if let Some((key, row)) = state.releasing().next() {
            return Some(format!("{key} is still released: {row:?}"));
        }
        if let Some((id, transfer)) = state.transfers().iter().next() {
            return Some(format!("transfer {id} is open: {transfer:?}"));
        }
        for shard in &self.shards {
            let held = shard.holdings.held().cloned().unwrap_or_default();
            let owned: Keys = state
                .rows()
                .filter(|(_, row)| row.owner.as_deref() == Some(&*shard.id))
                .filter_map(|(key, _)| ours(state, key))
                .collect();
            if held != owned {
                return Some(format!("{} holds {held:?} and owns {owned:?}", shard.id));
            }
            let holdings = &shard.holdings;
            let left = !holdings.releasing.is_empty()
                || !holdings.settled.is_empty()
                || !holdings.out.is_empty();
            if left {
                return Some(format!("{} has not let go: {holdings:?}", shard.id));
            }
            if shard.process.as_ref().is_some_and(|process| process.latched) {
                return Some(format!("{} is latched", shard.id));
            }
        }
        None
    }
}

/// A row that is owned, in the shard's terms.
fn ours(state: &State, key: &Row) -> Option<Key> {
    match key {
        Row::Cluster(cluster) => Some(Key::Cluster(cluster.as_str().into())),
        Row::Domain(domain) if Some(&domain.key) == state.ownership_key() => {
            let (key, value) = (domain.key.to_string(), domain.value.to_string());
            Some(Key::Domain(Domain { key, value }))
        }
        Row::Domain(_) => None,
    }
}
