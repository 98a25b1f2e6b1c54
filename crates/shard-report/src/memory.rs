//! What a client remembers between two reports, and what an answer does to it.
//! Pure: no clock, no network. It outlives a client that dies, for the process is
//! still the same one.

use std::time::Duration;

use bigfleet_model::FleetId;
use bigfleet_shard::holdings::{
    Attempt, Holdings,
    fleet::{self, Foreign, OldLeader},
};
use bigfleet_wire::v1alpha1::{
    Assignment, BoundElsewhere, CoordinatorInstruction, InstructAck, ReportAck,
    coordinator_instruction::Payload, instruct_ack::Outcome,
};

use crate::{
    done::DoneSet,
    instruction::{self, DUPLICATE, Order},
};

/// Everything that lives as long as the process and is the coordinator's business.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Tells two processes of one epoch apart.
    instance: u64,
    /// Number of the last report.
    cycle: i64,
    /// Highest term seen.
    mark: i64,
    fleet: Option<FleetId>,
    /// Not yet in a report that was acknowledged.
    acks: Vec<InstructAck>,
    done: DoneSet,
    /// The coordinator asked for our cluster ids.
    wants_clusters: bool,
    /// The coordinator asked for what we hold.
    wants_holdings: bool,
    /// The shard shares its provider.
    shared: bool,
}

/// What a report says besides how the shard stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// Of the process.
    pub instance: u64,
    /// Number of the report.
    pub cycle: i64,
    /// Highest term seen.
    pub observed_term: i64,
    /// Empty before the first answer.
    pub fleet_id: String,
    /// What became of instructions.
    pub acks: Vec<InstructAck>,
    /// Whether it names clusters.
    pub clusters: bool,
    /// Whether it says what is held.
    pub holdings: bool,
}

/// An answer that counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// Not our fleet.
    #[error(transparent)]
    Fleet(#[from] Foreign),
    /// An old leader.
    #[error(transparent)]
    Term(#[from] OldLeader),
}

/// What an answer leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Obeyed {
    /// The mark, to be shown to others.
    pub term: i64,
    /// Whether the report counted, for a shard that waits for that.
    pub attempt: Attempt,
    /// When the next report is wanted, if not at the usual time.
    pub next_report_after: Option<Duration>,
    /// The fleet that answered.
    pub fleet: Option<FleetId>,
    /// What is ours from now on, of a shared provider. To be taken in before anything
    /// is released.
    pub assignment: Option<Assignment>,
    /// Release instructions, each with its id. They are answered from what is on disk,
    /// so that they are done as often as they come.
    pub releases: Vec<(String, Payload)>,
    /// Clusters that we named and another shard has.
    pub bound_elsewhere: Vec<BoundElsewhere>,
}

impl Memory {
    /// Of a process with a provider of its own.
    #[must_use]
    pub const fn new(instance: u64) -> Self {
        Self {
            instance,
            cycle: 0,
            mark: 0,
            fleet: None,
            acks: Vec::new(),
            done: DoneSet::new(),
            wants_clusters: false,
            wants_holdings: false,
            shared: false,
        }
    }

    /// Of a shard that shares its provider: it goes on where the file says.
    #[must_use]
    pub fn sharing(instance: u64, holdings: &Holdings) -> Self {
        let (mark, fleet) = (holdings.term, holdings.fleet.clone());
        Self { mark, fleet, shared: true, ..Self::new(instance) }
    }

    /// Number of the last report.
    #[must_use]
    pub const fn cycle(&self) -> i64 {
        self.cycle
    }

    /// The next report. Acks stay here until one that carried them is acknowledged.
    pub fn begin(&mut self) -> Carried {
        self.cycle += 1;
        let fleet = self.fleet.as_ref();
        Carried {
            instance: self.instance,
            cycle: self.cycle,
            observed_term: self.mark,
            fleet_id: fleet.map_or_else(String::new, |fleet| fleet.as_str().to_owned()),
            acks: self.acks.clone(),
            clusters: self.wants_clusters,
            holdings: self.wants_holdings,
        }
    }

    /// Takes the answer to the last report, or changes nothing.
    pub fn receive(
        &mut self,
        answer: ReportAck,
        mut obey: impl FnMut(Order),
    ) -> Result<Obeyed, Ignored> {
        let fleet = match answer.fleet_id.as_str() {
            // A coordinator of the base contract has none.
            "" => None,
            text => Some(text.parse::<FleetId>().map_err(Foreign::from)?),
        };
        if let Some(theirs) = &fleet {
            fleet::follows(self.fleet.as_ref(), theirs)?;
        }
        self.mark = fleet::raise(self.mark, answer.coordinator_term)?;
        self.fleet = fleet.or_else(|| self.fleet.take());
        if answer.acknowledged {
            // One report at a time: what is here is what it carried.
            self.acks.clear();
            self.wants_clusters = false;
            self.wants_holdings = false;
        }
        self.wants_clusters |= answer.want_cluster_ids;
        self.wants_holdings |= answer.want_holdings;
        if answer.assignment.is_some() && !self.shared {
            tracing::warn!("assignment ignored: this shard has its own provider scope");
        }
        let attempt = if answer.acknowledged { Attempt::Answered } else { Attempt::Named };
        let mut releases = Vec::new();
        let mut instructions = answer.instructions;
        instructions.sort_by_key(|instruction| instruction.sequence_number);
        for instruction in instructions {
            if let Some(ack) = self.instructed(instruction, &mut obey, &mut releases) {
                self.answered(ack);
            }
        }
        let after = answer.next_report_after_ms;
        let after = (after > 0).then(|| Duration::from_millis(after.into()));
        Ok(Obeyed {
            term: self.mark,
            attempt,
            next_report_after: after,
            fleet: self.fleet.clone(),
            assignment: answer.assignment.filter(|_| self.shared),
            releases,
            bound_elsewhere: answer.bound_elsewhere,
        })
    }

    /// The next report says so.
    pub fn answered(&mut self, ack: InstructAck) {
        self.acks.retain(|earlier| earlier.instruction_id != ack.instruction_id);
        self.acks.push(ack);
    }

    fn instructed(
        &mut self,
        instruction: CoordinatorInstruction,
        obey: &mut impl FnMut(Order),
        releases: &mut Vec<(String, Payload)>,
    ) -> Option<InstructAck> {
        let id = instruction.instruction_id;
        if id.is_empty() {
            return None;
        }
        if self.done.contains(&id) {
            return Some(instruction::ack(id, Outcome::Accepted, DUPLICATE));
        }
        let (term, mark) = (instruction.coordinator_term, self.mark);
        if term < mark {
            let reason = format!("term {term} is below {mark}");
            return Some(instruction::ack(id, Outcome::RejectedStale, reason));
        }
        self.mark = term;
        if let Some(payload) = instruction.payload.as_ref().filter(|_| self.shared)
            && instruction::moves_machines(payload)
        {
            releases.push((id, payload.clone()));
            return None;
        }
        match instruction::read(instruction.payload) {
            Ok(order) => {
                obey(order);
                self.done.insert(&id);
                Some(instruction::ack(id, Outcome::Accepted, ""))
            }
            Err(refused) => {
                let reason = refused.to_string();
                tracing::warn!(instruction = id, reason, "instruction refused");
                Some(instruction::ack(id, refused.outcome(), reason))
            }
        }
    }
}

#[cfg(test)]
mod tests;
