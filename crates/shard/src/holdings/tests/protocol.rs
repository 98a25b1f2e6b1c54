//! Three shards, a provider and a coordinator in a few lines: reports that are lost,
//! late or doubled, crashes between any two steps, calls that outlive their process.
//! At any instant at most one shard may change a machine (coordinator invariant I1), and
//! with everybody alive everything settles (I9).

mod coordinator;

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::{ClusterId, MachineId, MachineState};
use coordinator::{Coordinator, Report};
use proptest::prelude::*;

use super::{super::*, domain, machines::class};

const SHARDS: usize = 3;
const ZONES: [&str; 2] = ["a", "b"];
const CLUSTERS: [&str; 2] = ["x", "y"];
/// By zone.
const MACHINES: [(&str, &str); 4] = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")];

/// Whom the provider has a machine bound to.
type Bound = Option<ClusterId>;

/// A call of a process that is on its way.
#[derive(Clone, Debug)]
struct Call {
    epoch: u32,
    machine: usize,
    to: Bound,
}

#[derive(Clone, Debug, Default)]
struct Process {
    epoch: u32,
    announced: bool,
    memory: Holdings,
    disk: Vec<u8>,
    /// Machines it acts on, as it read them.
    view: BTreeMap<usize, Bound>,
    calls: Vec<Call>,
}

impl Process {
    fn owns(&self, machine: usize, bound: &Bound) -> bool {
        let (id, zone) = MACHINES[machine];
        let state = if bound.is_some() { MachineState::Configured } else { MachineState::Idle };
        Ownership::of(&self.memory).owns(id, state, bound.as_ref(), &class(Some(zone)))
    }

    /// Whether it has a call of its own under way there.
    fn is_busy(&self, machine: usize) -> bool {
        self.calls.iter().any(|call| call.epoch == self.epoch && call.machine == machine)
    }

    fn take(&mut self, event: &Event) -> Vec<Effect> {
        let Ok(Step { after, effects }) = self.memory.apply(event) else { return Vec::new() };
        self.disk = file::encode(&after).unwrap();
        self.memory = after;
        let view = std::mem::take(&mut self.view);
        let keeps = |(machine, bound): &(usize, Bound)| {
            self.is_busy(*machine) || self.owns(*machine, bound)
        };
        self.view = view.into_iter().filter(keeps).collect();
        effects
    }

    fn crash(&mut self) {
        self.memory = file::decode(&self.disk).unwrap();
        self.view.clear();
        self.epoch += 1;
        self.announced = false;
    }
}

struct World {
    coordinator: Coordinator,
    shards: Vec<Process>,
    provider: Vec<Bound>,
    /// Reports that somebody sent and that may arrive again.
    late: Vec<Report>,
}

impl World {
    fn new() -> Self {
        let disk = file::encode(&Holdings::default()).unwrap();
        let shard = Process { disk, ..Process::default() };
        let mut coordinator = Coordinator::new(SHARDS);
        for (at, zone) in ZONES.iter().enumerate() {
            coordinator.move_key(Key::Domain(domain(zone)), at);
        }
        for (at, cluster) in CLUSTERS.iter().enumerate() {
            coordinator.move_key(Key::Cluster((*cluster).into()), at + 1);
        }
        Self {
            coordinator,
            shards: vec![shard; SHARDS],
            provider: vec![None; MACHINES.len()],
            late: Vec::new(),
        }
    }

    fn report(&self, shard: usize) -> Report {
        let holdings = &self.shards[shard].memory;
        let answers = holdings.out.iter().filter(|(_, out)| out.is_released());
        Report {
            shard,
            version: holdings.version(),
            releasing: holdings.releasing.clone(),
            settled: holdings.settled.clone(),
            answers: answers.map(|(id, out)| (id.clone(), out.clone())).collect(),
        }
    }

    /// One step, by three numbers.
    fn step(&mut self, (what, a, b): (u8, u8, u8)) {
        let (shard, other) = (usize::from(a) % SHARDS, usize::from(b) % SHARDS);
        let machine = usize::from(b) % MACHINES.len();
        match what % 14 {
            0 => self.coordinator.move_key(Key::Domain(domain(ZONES[usize::from(a) % 2])), other),
            1 => {
                let cluster = CLUSTERS[usize::from(a) % 2];
                self.coordinator.move_key(Key::Cluster(cluster.into()), other);
            }
            2 => self.coordinator.begin_transfer(shard, other),
            3 => self.coordinator.give_up(),
            // A report and its answer; or its answer is lost, or it is late.
            4..=6 => self.exchange(shard),
            7 => {
                let report = self.report(shard);
                self.coordinator.take(&report);
                self.late.push(report);
            }
            8 => {
                if let Some(report) = self.late.get(usize::from(b) % self.late.len().max(1)) {
                    self.coordinator.take(&report.clone());
                }
            }
            9 => self.read(shard),
            10 => self.act(shard, machine, usize::from(a) / SHARDS),
            11 => self.arrive(shard),
            12 => self.tend(shard, b % 3 == 0),
            _ => match b % 4 {
                0 => self.shards[shard].crash(),
                _ => self.announce(shard),
            },
        }
        self.check();
    }

    fn exchange(&mut self, shard: usize) {
        let report = self.report(shard);
        self.coordinator.take(&report);
        let (assignment, asked) = self.coordinator.answer(&report);
        if let Some(assignment) = assignment {
            self.shards[shard].take(&Event::Assigned(assignment));
        }
        for transfer in asked {
            self.release(shard, transfer);
        }
    }

    /// Lets go of an idle machine that nothing is under way on.
    fn release(&mut self, shard: usize, transfer: TransferId) {
        let process = &mut self.shards[shard];
        let loaned: BTreeSet<MachineId> = process
            .memory
            .assignment
            .iter()
            .flat_map(|one| one.machines_in.iter().map(|one| one.machine.clone()))
            .collect();
        let quiet = process.view.iter().find(|(machine, bound)| {
            bound.is_none()
                && !process.is_busy(**machine)
                && process.owns(**machine, bound)
                && !loaned.contains(MACHINES[**machine].0)
        });
        let Some((&machine, _)) = quiet else { return };
        let (id, zone) = MACHINES[machine];
        let out = Out { home: domain(zone), machines: [id.into()].into(), drain: None };
        process.take(&Event::Picked { transfer, out });
    }

    /// A List: what is ours, as the provider has it.
    fn read(&mut self, shard: usize) {
        let process = &mut self.shards[shard];
        for (machine, bound) in self.provider.iter().enumerate() {
            if process.is_busy(machine) {
                continue;
            }
            if process.owns(machine, bound) {
                process.view.insert(machine, bound.clone());
            } else {
                process.view.remove(&machine);
            }
        }
    }

    /// Sends a call: binds what is idle, drains what is bound.
    fn act(&mut self, shard: usize, machine: usize, cluster: usize) {
        let process = &mut self.shards[shard];
        let Some(bound) = process.view.get(&machine).cloned() else { return };
        let cluster = ClusterId::from(CLUSTERS[cluster % CLUSTERS.len()]);
        let to = if bound.is_some() { None } else { Some(cluster) };
        let may = to.as_ref().is_none_or(|cluster| process.memory.holds_cluster(cluster));
        let owns = process.owns(machine, &bound);
        if process.announced && may && owns && !process.is_busy(machine) {
            process.calls.push(Call { epoch: process.epoch, machine, to });
        }
    }

    /// The oldest call arrives, of whichever process: the provider refuses old epochs.
    fn arrive(&mut self, shard: usize) {
        let process = &mut self.shards[shard];
        if process.calls.is_empty() {
            return;
        }
        let call = process.calls.remove(0);
        if process.announced && call.epoch < process.epoch {
            return;
        }
        // What it was sent for must still be so: the provider knows its states.
        let fits = self.provider[call.machine].is_some() != call.to.is_some();
        if fits {
            self.provider[call.machine] = call.to.clone();
        }
        if call.epoch == process.epoch {
            let now = self.provider[call.machine].clone();
            if process.owns(call.machine, &now) {
                process.view.insert(call.machine, now);
            } else {
                process.view.remove(&call.machine);
            }
        }
    }

    fn announce(&mut self, shard: usize) {
        let process = &mut self.shards[shard];
        process.announced = true;
        process.calls.retain(|call| call.epoch == process.epoch);
    }

    fn tend(&mut self, shard: usize, unused: bool) {
        let process = &mut self.shards[shard];
        let own = process.calls.iter().filter(|call| call.epoch == process.epoch);
        let busy: Vec<Busy> = own
            .map(|call| {
                let bound = process.view.get(&call.machine).cloned().flatten();
                let zone = domain(MACHINES[call.machine].1);
                Busy {
                    domain: bound.is_none().then_some(zone),
                    cluster: bound.or_else(|| call.to.clone()),
                }
            })
            .collect();
        let keys = quiet(&process.memory.releasing, busy, process.announced);
        process.take(&Event::Quiet(keys));
        let machines_in = process.memory.assignment.iter().flat_map(|one| &one.machines_in);
        let done = machines_in.filter(|one| {
            let machine = MACHINES.iter().position(|(id, _)| *id == &*one.machine).unwrap();
            let known = process.view.get(&machine);
            let bound = known.is_some_and(Option::is_some);
            !process.is_busy(machine) && (bound || (unused && process.announced))
        });
        let done = done.map(|one| (one.transfer.clone(), one.machine.clone())).collect();
        process.take(&Event::Done(done));
    }

    /// coordinator invariant I1.
    fn check(&self) {
        for (machine, (id, _)) in MACHINES.iter().enumerate() {
            let may: Vec<usize> =
                (0..SHARDS).filter(|shard| self.may_change(*shard, machine)).collect();
            assert!(may.len() <= 1, "{id} may be changed by {may:?}");
        }
        for cluster in CLUSTERS.map(ClusterId::from) {
            let held = |shard: &&Process| shard.memory.holds_cluster(&cluster);
            assert!(self.shards.iter().filter(held).count() <= 1, "{cluster} is held twice");
        }
    }

    /// Whether anything of a shard may reach a machine: what it owns by the provider's
    /// word, and every call on its way that the provider would take.
    fn may_change(&self, shard: usize, machine: usize) -> bool {
        let process = &self.shards[shard];
        let bound = &self.provider[machine];
        let call = process.calls.iter().any(|call| {
            let refused = process.announced && call.epoch < process.epoch;
            call.machine == machine && !refused && bound.is_some() != call.to.is_some()
        });
        call || process.owns(machine, bound)
    }

    /// Everybody alive, no new commands: I9.
    fn settle(&mut self) {
        for _ in 0..40 {
            for shard in 0..SHARDS {
                self.announce(shard);
                while !self.shards[shard].calls.is_empty() {
                    self.arrive(shard);
                }
                self.read(shard);
                self.tend(shard, true);
                self.exchange(shard);
                self.check();
            }
            self.coordinator.give_up();
        }
        assert_eq!(self.coordinator.unsettled(), Vec::<String>::new());
        for (shard, process) in self.shards.iter().enumerate() {
            let held = self.coordinator.held_by(shard);
            assert_eq!(process.memory.held().cloned().unwrap_or_default(), held, "shard {shard}");
            assert!(process.memory.releasing.is_empty() && process.memory.settled.is_empty());
            assert!(process.memory.out.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn coordinator_inv_i1_i9_one_owner_at_any_instant_and_all_settles(
        steps in proptest::collection::vec(any::<(u8, u8, u8)>(), 1..400)
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.settle();
    }
}
