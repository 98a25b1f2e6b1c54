//! What a donor lets go of for a transfer (coordinator chapter §9). The coordinator
//! knows counts, the donor machines.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bigfleet_engine::{Phase2Options, victim_score};
use bigfleet_model::{
    CapacityType, Class, MachineId, MachineState, Need, PenaltyBucket, Stamp, grace::priority_gap,
};

use super::{Domain, Drain, Holdings, Out, TransferId};

/// Most machines of one transfer.
const MOST: usize = 100;
/// The longest name of a machine that is replicated (coordinator chapter §3), in bytes.
const LONGEST_NAME: usize = 253;

/// Whether a machine of this name may be lent: a coordinator ends each transfer of one whose
/// name is too long, and would ask for it again, before any other.
#[must_use]
pub const fn may_be_lent(machine: &str) -> bool {
    machine.len() <= LONGEST_NAME
}

/// What kind of machines a transfer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// As they are.
    Idle,
    /// Slots.
    Speculative,
    /// Configured ones, once they are drained.
    Drained,
}

/// What a transfer asks for.
#[derive(Clone, Debug)]
pub struct Selector {
    /// In which state.
    pub wanted: Wanted,
    /// At most so many.
    pub count: usize,
    /// Of this type; empty for any.
    pub instance_type: String,
    /// In this zone; empty for any.
    pub zone: String,
    /// Paid for so; none for any.
    pub capacity_type: Option<CapacityType>,
    /// Whoever asks: requirements and smallest unit; for a drain its priority and
    /// interruption penalty, too.
    pub need: Need,
}

/// A quiet machine of a held domain that was not received from somebody else.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The machine.
    pub id: MachineId,
    /// Its domain.
    pub home: Domain,
    /// Where it stands.
    pub state: MachineState,
    /// What it is.
    pub class: Arc<Class>,
    /// Whom it serves.
    pub stamp: Option<Arc<Stamp>>,
}

impl Selector {
    /// Whether a machine in this state and of this class is of the kind; cheap, for it is
    /// asked about every machine.
    #[must_use]
    pub fn asks_for(&self, state: MachineState, class: &Class) -> bool {
        let wanted = match self.wanted {
            Wanted::Idle => MachineState::Idle,
            Wanted::Speculative => MachineState::Speculative,
            Wanted::Drained => MachineState::Configured,
        };
        let any_or = |asked: &str, is: &str| asked.is_empty() || asked == is;
        state == wanted
            && any_or(&self.instance_type, &class.instance_type)
            && any_or(&self.zone, &class.zone)
            && self.capacity_type.is_none_or(|asked| asked == class.capacity_type)
    }

    fn matches(&self, candidate: &Candidate) -> bool {
        let class = &*candidate.class;
        self.asks_for(candidate.state, class)
            && self.need.usable(class, class.capacity())
            && self.drain().is_none_or(|drain| drain.may_evict(candidate.stamp.as_deref()))
    }

    /// What is drained for whoever asks, if anything is.
    fn drain(&self) -> Option<Drain> {
        let profile = &self.need.profile;
        (self.wanted == Wanted::Drained).then(|| Drain {
            priority: profile.priority(),
            bucket: profile.interruption(),
            over: false,
        })
    }

    /// Lower goes first.
    fn rank(&self, candidate: &Candidate) -> f64 {
        let none = Stamp::default();
        let stamp = candidate.stamp.as_deref().unwrap_or(&none);
        if self.wanted != Wanted::Drained {
            return stamp.reclamation;
        }
        let gap = priority_gap(self.need.profile.priority(), stamp.priority);
        let options = Phase2Options::default();
        -victim_score(&options, gap, stamp.interruption, stamp.reclamation)
    }
}

impl Drain {
    /// Whether work of this stamp may end for it: cheap work yields to dear, never the
    /// reverse, and what nothing is known of stays. Asked when victims are chosen and
    /// again before each drain, for a machine may have come to other work in between.
    #[must_use]
    pub fn may_evict(&self, stamp: Option<&Stamp>) -> bool {
        stamp.is_some_and(|stamp| {
            stamp.priority.is_none_or(|priority| priority < self.priority)
                && PenaltyBucket::from_dollars(stamp.interruption) < self.bucket
        })
    }
}

/// A drain for a transfer ends after so long with the machines that made it.
const DRAINED_AFTER: Duration = Duration::from_secs(15 * 60);

/// Whether a drain for a transfer is over, `since` it began: all of its machines are Idle,
/// or it took too long. Not before the provider has answered this process's epoch, for a
/// drain of the process before may still arrive.
#[must_use]
pub fn drained(out: &Out, idle: &BTreeSet<MachineId>, since: Duration, announced: bool) -> bool {
    announced && (idle.len() == out.machines.len() || since >= DRAINED_AFTER)
}

/// What a donor does about a release instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// These go.
    These(Out),
    /// None matches.
    Nothing,
    /// It is too early to say.
    NotYet,
}

impl Holdings {
    /// What goes for a transfer: what was chosen before, else what matches now.
    /// `announced`: the provider has answered this process's epoch. Before that a call of
    /// the process before may reach any machine, so that none is quiet.
    #[must_use]
    pub fn choose(
        &self,
        transfer: &TransferId,
        selector: &Selector,
        announced: bool,
        candidates: impl FnOnce() -> Vec<Candidate>,
    ) -> Chosen {
        match self.out.get(transfer) {
            Some(out) => Chosen::These(out.clone()),
            None if !announced => Chosen::NotYet,
            None => pick(selector, candidates()).map_or(Chosen::Nothing, Chosen::These),
        }
    }
}

/// At most so many matching machines of **one** domain: of the one with the most of
/// them, the first by name among equals. In it the least valuable first, then by id.
/// None if no machine matches.
#[must_use]
pub fn pick(selector: &Selector, candidates: impl IntoIterator<Item = Candidate>) -> Option<Out> {
    let most = selector.count.min(MOST);
    let mut by_home: BTreeMap<Domain, Vec<(f64, MachineId)>> = BTreeMap::new();
    let may_go = |one: &Candidate| may_be_lent(&one.id) && selector.matches(one);
    for one in candidates.into_iter().filter(may_go) {
        let ranked = (selector.rank(&one), one.id);
        by_home.entry(one.home).or_default().push(ranked);
    }
    let mut best: Option<(Domain, Vec<(f64, MachineId)>)> = None;
    for (home, machines) in by_home {
        let more = |(_, known): &(_, Vec<_>)| machines.len().min(most) > known.len().min(most);
        if best.as_ref().is_none_or(more) {
            best = Some((home, machines));
        }
    }
    let (home, mut machines) = best.filter(|_| most > 0)?;
    machines.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let machines = machines.into_iter().take(most).map(|(_, id)| id).collect();
    Some(Out { home, machines, drain: selector.drain() })
}
