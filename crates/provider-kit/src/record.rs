//! One machine as the kit keeps it, and how it is stored.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bigfleet_model::{CapacityType, Class, Machine, MachineState, gate::inventory};
use bigfleet_provider::mutant::{Mutant, active};
use bigfleet_wire::v1alpha1 as wire;

use crate::cloud::Caps;

/// One machine. Records are immutable and shared: a List holds on to the ones it
/// tells of while the next change replaces them.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What the wire shows, but for the notice.
    pub machine: Machine,
    /// Of the last visible change.
    pub revision: u64,
    /// The probability that an interruption notice raised it to; 0 without one.
    pub notice: f64,
    /// When the present state began, since the unix epoch; whole milliseconds.
    pub since: Duration,
    /// It failed for lack of stock or quota: worth trying again soon.
    pub shortage: bool,
}

impl Record {
    /// A fresh one, before its first revision.
    #[must_use]
    pub fn new(machine: Machine, since: Duration) -> Self {
        Self { machine, revision: 0, notice: 0.0, since, shortage: false }
    }

    /// As the wire shows it.
    #[must_use]
    pub fn to_wire(&self) -> wire::Machine {
        let mut message = wire::Machine::from(&self.machine);
        message.interruption_probability = message.interruption_probability.max(self.notice);
        #[cfg(feature = "mutants")]
        bigfleet_provider::distort(self.machine.state, &mut message);
        message
    }

    /// Whether its host can be bought again; otherwise it is recycled.
    #[must_use]
    pub fn is_elastic(&self, caps: Caps) -> bool {
        let rented =
            matches!(self.machine.class.capacity_type, CapacityType::OnDemand | CapacityType::Spot);
        caps.destroy && !caps.fixed && rented
    }

    /// Bytes of the stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut machine = wire::Machine::from(&self.machine);
        if active(Mutant::BindingNotStored) && !machine.cluster.is_empty() {
            machine.cluster = "?".to_owned();
            machine.shard_metadata.clear();
        }
        prost::Message::encode_to_vec(&Stored {
            machine: Some(machine),
            revision: self.revision,
            notice: self.notice,
            since_ms: u64::try_from(self.since.as_millis()).unwrap_or(u64::MAX),
            shortage: self.shortage,
        })
    }

    /// The inverse of [`Record::encode`]. What was checked when it came in is
    /// checked again: the file may not be ours.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let stored: Stored = prost::Message::decode(bytes).map_err(|error| error.to_string())?;
        let message = stored.machine.ok_or("no machine in it")?;
        let accepted = inventory::machine(message).map_err(|rejected| rejected.to_string())?;
        // The wire shows it as a probability.
        if !(0.0..=1.0).contains(&stored.notice) {
            return Err(format!("notice: {} is not in [0, 1]", stored.notice));
        }
        Ok(Self {
            machine: accepted.machine,
            revision: stored.revision,
            notice: stored.notice,
            since: Duration::from_millis(stored.since_ms),
            shortage: stored.shortage,
        })
    }

    /// Whether somebody is at work on it.
    #[must_use]
    pub fn is_transitional(&self) -> bool {
        matches!(
            self.machine.state,
            MachineState::Creating
                | MachineState::Configuring
                | MachineState::Draining
                | MachineState::Deleting
        )
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Stored {
    #[prost(message, optional, tag = "1")]
    machine: Option<wire::Machine>,
    #[prost(uint64, tag = "2")]
    revision: u64,
    #[prost(double, tag = "3")]
    notice: f64,
    #[prost(uint64, tag = "4")]
    since_ms: u64,
    #[prost(bool, tag = "5")]
    shortage: bool,
}

/// Lets machines that differ only in id share what they have in common.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    known: HashSet<Arc<Class>>,
}

impl Classes {
    /// Replaces the machine's class by an equal one that others have.
    pub(crate) fn share(&mut self, machine: &mut Machine) {
        match self.known.get(&machine.class) {
            Some(known) => machine.class = known.clone(),
            None => drop(self.known.insert(machine.class.clone())),
        }
    }

    /// Takes a class that a machine has.
    pub(crate) fn learn(&mut self, class: &Arc<Class>) {
        self.known.insert(class.clone());
    }

    /// Forgets classes that no machine has any more.
    pub(crate) fn prune(&mut self) {
        self.known.retain(|class| Arc::strong_count(class) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Stored {
        let machine = wire::Machine {
            id: "m-1".into(),
            state: wire::MachineState::Speculative.into(),
            instance_type: "m8".into(),
            zone: "a".into(),
            capacity_type: wire::CapacityType::Spot.into(),
            price_per_hour: 0.1,
            interruption_probability: 0.3,
            ..wire::Machine::default()
        };
        let since_ms = 1_700_000_000_000;
        Stored { machine: Some(machine), revision: 7, notice: 0.99, since_ms, shortage: true }
    }

    fn decode(stored: &Stored) -> Result<Record, String> {
        Record::decode(&prost::Message::encode_to_vec(stored))
    }

    #[test]
    fn what_was_stored_is_read_again() {
        let record = decode(&stored()).unwrap();
        assert_eq!((record.revision, record.notice, record.shortage), (7, 0.99, true));
        assert_eq!(Record::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn a_record_that_the_wire_would_not_take_is_refused() {
        assert!(decode(&Stored { machine: None, ..stored() }).is_err());
        let nameless =
            stored().machine.map(|machine| wire::Machine { id: String::new(), ..machine });
        assert!(decode(&Stored { machine: nameless, ..stored() }).is_err());
        for notice in [f64::NAN, f64::INFINITY, -0.1, 1.5] {
            let refused = decode(&Stored { notice, ..stored() }).unwrap_err();
            assert!(refused.starts_with("notice: "), "{refused}");
        }
    }
}
