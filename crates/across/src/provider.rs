//! A provider with `strict_epoch`: the real order of checks and the real lifecycle, with
//! nothing around them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bigfleet_model::{ClusterId, Machine, MachineId, MachineState, Stamp, gate};
use bigfleet_provider::protocol::{
    self, Binding, Event, FenceBook, FencePolicy, FenceRefusal, Kind, Known, News, Refused, Step,
    Token, admit, step,
};
use bigfleet_wire::v1alpha1 as wire;

/// One mutation on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Who calls, from which process, and how new it is.
    pub token: Token,
    /// What for.
    pub kind: Kind,
    /// Of which machine.
    pub machine: MachineId,
    /// For whom; of a Configure.
    pub cluster: Option<ClusterId>,
    /// What it serves; of a Configure.
    pub stamp: Option<Arc<Stamp>>,
}

/// What a caller hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Accepted: the record as it is now.
    Accepted(Box<Machine>),
    /// A newer process of this shard has been here.
    Fenced,
    /// Not from where the machine is.
    Refused,
}

#[derive(Clone, Debug)]
struct Held {
    machine: Machine,
    recorded: BTreeSet<Kind>,
}

/// All machines.
#[derive(Clone, Debug)]
pub struct Provider {
    fence: FenceBook,
    machines: BTreeMap<MachineId, Held>,
}

impl Default for Provider {
    fn default() -> Self {
        let policy = FencePolicy { strict_epoch: true, ..FencePolicy::default() };
        Self { fence: FenceBook::new(policy), machines: BTreeMap::new() }
    }
}

impl Provider {
    /// A machine, or a slot for one, that serves nobody.
    pub fn add(&mut self, id: &str, zone: &str, state: MachineState) -> Result<(), String> {
        let resources = [("cpu".to_owned(), "4".to_owned())].into();
        let host = wire::HostRef { provider: "p".into(), r#ref: id.to_owned() };
        let record = wire::Machine {
            id: id.to_owned(),
            state: state.to_wire(),
            host: (state != MachineState::Speculative).then_some(host),
            instance_type: "t".into(),
            zone: zone.to_owned(),
            capacity_type: wire::CapacityType::OnDemand.into(),
            price_per_hour: 1.0,
            resources: Some(wire::Resources { resources }),
            ..wire::Machine::default()
        };
        let machine = gate::inventory::machine(record).map_err(|error| error.to_string())?.machine;
        let held = Held { machine, recorded: BTreeSet::new() };
        self.machines.insert(id.into(), held);
        Ok(())
    }

    /// A List.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.machines.values().map(|held| &held.machine)
    }

    /// A Get.
    #[must_use]
    pub fn machine(&self, id: &str) -> Option<&Machine> {
        self.machines.get(id).map(|held| &held.machine)
    }

    /// Kinds of calls that were accepted and are remembered.
    pub(crate) fn recorded(&self, id: &str) -> Option<&BTreeSet<Kind>> {
        self.machines.get(id).map(|held| &held.recorded)
    }

    /// What a call that arrived now would come to.
    fn admission(&self, call: &Call) -> Result<Step, Refused> {
        admit(&self.fence, question(call), self.known(call)).outcome
    }

    /// Whether a call that arrived now would change its machine.
    #[must_use]
    pub fn would_start(&self, call: &Call) -> bool {
        matches!(self.admission(call), Ok(Step::Start(_)))
    }

    /// Whether a call that arrived now would change its machine, and whether one like it
    /// ever could: not once it is fenced.
    pub(crate) fn verdict(&self, call: &Call) -> (bool, bool) {
        let admission = self.admission(call);
        let fenced = matches!(admission, Err(Refused::Fence(_)));
        (matches!(admission, Ok(Step::Start(_))), fenced)
    }

    /// A call arrives.
    pub fn arrive(&mut self, call: &Call) -> Answer {
        let admission = admit(&self.fence, question(call), self.known(call));
        if let Some(advance) = admission.advance {
            self.fence.advance(advance);
        }
        match admission.outcome {
            Err(Refused::Fence(FenceRefusal::Stale(_) | FenceRefusal::TokenRequired)) => {
                Answer::Fenced
            }
            Err(_) => Answer::Refused,
            Ok(Step::Start(effects)) => {
                let Some(held) = self.machines.get_mut(&call.machine) else {
                    return Answer::Refused;
                };
                let binding = call
                    .cluster
                    .clone()
                    .map(|cluster| Binding { cluster, metadata: BTreeMap::new() });
                effects.apply(&mut held.machine, News { binding, ..News::default() });
                if call.kind == Kind::Configure {
                    held.machine.stamp = call.stamp.clone();
                }
                held.recorded.insert(call.kind);
                Answer::Accepted(Box::new(held.machine.clone()))
            }
            Ok(_) => match self.machine(&call.machine) {
                Some(machine) => Answer::Accepted(Box::new(machine.clone())),
                None => Answer::Refused,
            },
        }
    }

    /// The first words of a process: its own epoch, and the one before, which must be
    /// refused. `None` if the first is.
    pub fn announce(&mut self, shard: &str, epoch: i64) -> Option<bool> {
        let word = |id: String, epoch| Call {
            token: Token::new(shard, epoch, 1),
            kind: Kind::Delete,
            machine: id.into(),
            cluster: None,
            stamp: None,
        };
        if self.arrive(&word(format!("epoch.{shard}"), epoch)) == Answer::Fenced {
            return None;
        }
        Some(self.arrive(&word(format!("epoch-probe.{shard}"), epoch - 1)) == Answer::Fenced)
    }

    /// The highest epoch of a shard.
    #[must_use]
    pub fn epoch(&self, shard: &str) -> Option<i64> {
        self.fence.highest_epoch(shard)
    }

    /// What is under way on a machine succeeds.
    pub fn finish(&mut self, id: &str) {
        let Some(kind) = self.machine(id).and_then(|machine| Kind::running(machine.state)) else {
            return;
        };
        self.happen(id, Event::Done { kind, current: true });
    }

    /// What is under way on a machine fails, or the machine breaks.
    pub fn fail(&mut self, id: &str) {
        let running = self.machine(id).and_then(|machine| Kind::running(machine.state));
        let event = running.map_or(Event::Broke, |kind| Event::Failed { kind, current: true });
        self.happen(id, event);
    }

    /// A broken machine is as new.
    pub fn repair(&mut self, id: &str) {
        let slot = self.machine(id).is_some_and(|machine| machine.host.is_none());
        self.happen(id, Event::Repaired { elastic: slot });
    }

    fn happen(&mut self, id: &str, event: Event) {
        let Some(held) = self.machines.get_mut(id) else { return };
        let Ok(Step::Move(effects)) = step(held.machine.state, event) else { return };
        let host = held.machine.host.clone().or_else(|| {
            let (provider, reference) = ("p".to_owned(), id.to_owned());
            Some(bigfleet_model::HostRef { provider, reference })
        });
        let error = "broken".to_owned();
        effects.apply(&mut held.machine, News { host, error, ..News::default() });
        if held.machine.cluster.is_none() {
            held.machine.stamp = None;
        }
        if effects.forget_operations {
            held.recorded.clear();
        }
    }

    fn known(&self, call: &Call) -> Option<Known<'_>> {
        let held = self.machines.get(&call.machine)?;
        Some(Known {
            state: held.machine.state,
            cluster: held.machine.cluster.as_deref(),
            recorded: held.recorded.contains(&call.kind),
        })
    }
}

fn question(call: &Call) -> protocol::Call<'_> {
    protocol::Call {
        kind: call.kind,
        machine: &call.machine,
        cluster: call.cluster.as_deref(),
        token: &call.token,
    }
}
