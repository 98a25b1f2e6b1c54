//! A shard: its disk, and the process on it. The process is the real core (`holdings`, the
//! report client's `memory`) in a shell without tasks: what the real shell awaits is a step
//! of the world here, so that anything may happen in between.

mod desk;
mod quota;
mod report;
mod tend;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use bigfleet_model::{ClusterId, Machine, MachineId, MachineState};
use bigfleet_shard::{
    Answered,
    holdings::{
        Attempt, Effect, Event, Holdings, Key, Opening, Ownership, Refused, Step, TransferId, file,
    },
};
use bigfleet_shard_report::{memory::Memory, shared};
use bigfleet_wire::v1alpha1::{self as wire, coordinator_instruction::Payload};
pub use desk::Act;
use desk::Pending;
pub(crate) use desk::{Entry, Hold, unanswered};

use crate::key::{Order, describe_holdings};

/// What outlives a process.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Of the last process.
    pub epoch: i64,
    /// The file of holdings.
    pub file: Vec<u8>,
}

/// One shard.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Its name.
    pub id: String,
    /// What it has on disk.
    pub disk: Disk,
    /// The process, while there is one.
    pub process: Option<Process>,
    /// Whose the machines are by the file, whether the process lives or not.
    pub owned: Ownership,
    /// What the file says.
    pub holdings: Holdings,
    /// Clusters whose operators are connected here.
    pub operators: BTreeSet<ClusterId>,
    /// What it lacks.
    pub lacks: Vec<wire::Shortfall>,
}

/// A running process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Of this process.
    pub epoch: i64,
    /// What the client remembers.
    pub memory: Memory,
    /// The provider has answered its epoch.
    pub announced: bool,
    /// What its first reports came to.
    pub opening: Opening,
    /// Somebody newer is there: nothing is done any more.
    pub latched: bool,
    /// The report that is under way.
    pub waits_for: Option<i64>,
    in_force: Ownership,
    /// Names what is in force.
    in_force_key: u64,
    revision: u64,
    /// On its way to the disk.
    pub writing: Option<Writing>,
    /// The rest of an answer.
    todo: VecDeque<Todo>,
    /// Machines as this process sees them.
    pub desk: BTreeMap<MachineId, Entry>,
    /// A List that is under way.
    pub listing: Option<Listing>,
    listed: Option<u64>,
    /// Since which revision all domains of ours are.
    domains_since: u64,
    sequence: i64,
    received: BTreeMap<(TransferId, MachineId), Duration>,
    out: BTreeMap<TransferId, Duration>,
    unwanted: BTreeSet<MachineId>,
    neighbours: BTreeMap<MachineId, Machine>,
}

/// A state that is being written.
#[derive(Clone, Debug)]
pub struct Writing {
    after: Holdings,
    effects: Vec<Effect>,
    /// The release instruction that it is for.
    instruction: Option<String>,
}

/// What an answer leads to, in this order.
#[derive(Clone, Debug)]
enum Todo {
    Hear(Option<bigfleet_model::FleetId>, i64),
    Assign(Box<wire::Assignment>),
    Release(String, Box<Payload>),
    Attempted(Attempt),
}

/// A List that is under way.
#[derive(Clone, Debug)]
pub struct Listing {
    owned: Ownership,
    key: u64,
    revision: u64,
    began: Duration,
    /// What it told, once it was read.
    pub records: Option<Vec<bigfleet_model::Machine>>,
    /// Machines that were written since it began.
    touched: BTreeSet<MachineId>,
}

impl Shard {
    /// A shard that was never started.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            disk: Disk { epoch: 0, file: Vec::new() },
            process: None,
            owned: Ownership::default(),
            holdings: Holdings::default(),
            operators: BTreeSet::new(),
            lacks: Vec::new(),
        }
    }

    /// A process starts on what the disk says.
    pub fn start(&mut self) -> Result<(), String> {
        self.disk.epoch += 1;
        self.holdings = match self.disk.file.as_slice() {
            [] => Holdings::default(),
            bytes => file::decode(bytes)?,
        };
        self.owned = Ownership::of(&self.holdings);
        let instance = u64::try_from(self.disk.epoch).unwrap_or_default();
        self.process = Some(Process {
            epoch: self.disk.epoch,
            memory: Memory::sharing(instance, &self.holdings),
            announced: false,
            opening: Opening::default(),
            latched: false,
            waits_for: None,
            in_force: self.owned.clone(),
            in_force_key: name(&self.holdings),
            revision: 0,
            writing: None,
            todo: VecDeque::new(),
            desk: BTreeMap::new(),
            listing: None,
            listed: None,
            domains_since: 0,
            sequence: 1,
            received: BTreeMap::new(),
            out: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            neighbours: BTreeMap::new(),
        });
        Ok(())
    }

    /// The process dies; what was not written is lost.
    pub fn crash(&mut self) {
        self.process = None;
    }

    /// The volume is another, empty one. `--epoch-floor` is what an operator remembers.
    pub fn lose_disk(&mut self) {
        self.process = None;
        self.disk.file.clear();
        self.holdings = Holdings::default();
        self.owned = Ownership::default();
    }

    /// Takes an event in: less is in force at once, the rest once it is written.
    fn take(&mut self, event: &Event, instruction: Option<String>) -> Result<(), Refused> {
        let Step { after, effects } = self.holdings.apply(event)?;
        let Some(process) = self.process.as_mut() else { return Ok(()) };
        if after == self.holdings {
            self.follow(&effects, instruction);
            return Ok(());
        }
        if effects.iter().any(Effect::takes) {
            let key = process.in_force_key.rotate_left(7) ^ name(&after);
            process.put_in_force(process.in_force.and(&Ownership::of(&after)), key);
            process.let_go();
        }
        process.writing = Some(Writing { after, effects, instruction });
        Ok(())
    }

    /// The disk has it.
    pub fn written(&mut self) -> Result<(), String> {
        let Some(process) = self.process.as_mut() else { return Ok(()) };
        let Some(Writing { after, effects, instruction }) = process.writing.take() else {
            return Ok(());
        };
        self.disk.file = file::encode(&after).map_err(|error| error.to_string())?;
        self.owned = Ownership::of(&after);
        self.holdings = after;
        process.put_in_force(self.owned.clone(), name(&self.holdings));
        if effects.iter().any(|effect| matches!(effect, Effect::Hold(Key::Domain(_)))) {
            process.domains_since = process.revision;
        }
        self.follow(&effects, instruction);
        self.go_on();
        Ok(())
    }

    /// What follows from a state that is on disk.
    fn follow(&mut self, effects: &[Effect], instruction: Option<String>) {
        let Some(id) = instruction else { return };
        let out = effects.iter().find_map(|effect| match effect {
            Effect::Answer { out, .. } => Some(out.clone()),
            _ => None,
        });
        self.ack(id, Answered::of(out, &self.id));
    }

    fn ack(&mut self, id: String, answered: Answered) {
        if let (Some(process), Some(ack)) = (self.process.as_mut(), shared::ack(id, answered)) {
            process.memory.answered(ack);
        }
    }

    /// Whether whoever changes holdings has to wait.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.writing.is_some())
    }
}

impl Process {
    fn put_in_force(&mut self, ownership: Ownership, key: u64) {
        self.in_force = ownership;
        self.in_force_key = key;
        self.revision += 1;
    }

    /// Versions and calls, by epoch and sequence number, that something is still to come of.
    pub(crate) fn numbers(&self, mut version: impl FnMut(i64), calls: &mut BTreeSet<(i64, i64)>) {
        if let Some(writing) = &self.writing {
            version(writing.after.version());
        }
        for todo in &self.todo {
            if let Todo::Assign(assignment) = todo {
                version(assignment.version);
            }
        }
        for entry in self.desk.values() {
            calls.extend(entry.sequence().map(|sequence| (self.epoch, sequence)));
        }
    }

    /// The part of it that tells states apart and is nobody else's business.
    pub(crate) fn describe_rest(&self, text: &mut String, order: &Order) -> std::fmt::Result {
        use std::fmt::Write;
        let listed = self.listed.map(|listed| listed >= self.revision);
        let rest = (self.opening.missed(), self.waits_for.is_some(), self.in_force_key, listed);
        write!(text, " {rest:?} ")?;
        if let Some(Writing { after, effects, instruction }) = &self.writing {
            describe_holdings(text, after, order)?;
            write!(text, "{effects:?} {instruction:?} ")?;
        }
        for todo in &self.todo {
            match todo {
                Todo::Assign(assignment) => {
                    let version = order.version(assignment.version);
                    let assignment = wire::Assignment { version: 0, ..(**assignment).clone() };
                    write!(text, "{version:?} {assignment:?}")?;
                }
                Todo::Hear(..) | Todo::Release(..) | Todo::Attempted(_) => {
                    write!(text, "{todo:?}")?
                }
            }
        }
        for (id, entry) in &self.desk {
            let Entry { record, pending, hold } = entry;
            let call = entry.sequence().map(|sequence| order.call(self.epoch, sequence));
            let pending = pending.as_ref().map(Pending::told);
            let hold = hold.map(|hold| hold.start);
            let (state, cluster) = (record.state, &record.cluster);
            write!(text, ";{id} {state:?} {cluster:?} {pending:?} {hold:?} {call:?}")?;
        }
        if let Some(listing) = &self.listing {
            write!(text, " listing {} {:?}", listing.key, listing.touched)?;
            for record in listing.records.iter().flatten() {
                write!(text, ";{} {:?} {:?}", record.id, record.state, record.cluster)?;
            }
        }
        // Of a neighbour's machine only that is asked.
        let idle = self.neighbours.iter().filter(|(_, one)| one.state == MachineState::Idle);
        let idle: Vec<&MachineId> = idle.map(|(machine, _)| machine).collect();
        write!(text, " {:?} {idle:?}", self.unwanted)
    }

    /// Whether anything may be done to machines.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.announced && self.opening.is_open() && !self.latched
    }

    /// Whether an answer is still being taken in.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.writing.is_some() || !self.todo.is_empty()
    }
}

/// Equal for holdings by which the same machines are owned.
fn name(holdings: &Holdings) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    let away = holdings.out.values().flat_map(|out| &out.machines);
    let mut away: BTreeSet<&MachineId> = away.collect();
    if let Some(assignment) = &holdings.assignment {
        let received: BTreeSet<&MachineId> =
            assignment.machines_in.iter().map(|one| &one.machine).collect();
        away.extend(assignment.machines_out.iter().map(|one| &one.machine));
        (&assignment.held.domains, &assignment.held.clusters, received).hash(&mut hasher);
    }
    away.hash(&mut hasher);
    hasher.finish()
}
