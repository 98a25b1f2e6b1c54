//! Zombies: processes of a shard that live on after their successor has begun
//! (provider chapter §2).

use std::{collections::HashMap, sync::Arc};

use bigfleet_model::MachineId;
use smallvec::SmallVec;

use super::{ghosts::Ghosts, token::Token};
use crate::mutant::{Mutant, active};

/// The newest token seen from a shard for a machine, without its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark {
    /// Counts first.
    pub epoch: i64,
    /// Counts within an epoch.
    pub sequence: i64,
}

impl Mark {
    const fn of(token: &Token) -> Self {
        Self { epoch: token.epoch, sequence: token.sequence }
    }

    /// Strictly newer: a greater epoch frees the sequence space.
    fn is_newer_than(self, mark: Self) -> bool {
        if active(Mutant::FenceAcceptsEqual) {
            return self >= mark;
        }
        if active(Mutant::SequenceNotReset) {
            return self.epoch >= mark.epoch && self.sequence > mark.sequence;
        }
        if active(Mutant::EpochIgnored) {
            return self.sequence > mark.sequence;
        }
        if active(Mutant::TokenWraps) {
            return self >= Self { sequence: mark.sequence.wrapping_add(1), ..mark };
        }
        self > mark
    }
}

/// How strict a provider is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FencePolicy {
    /// Unfenced calls are refused.
    pub require_token: bool,
    /// An epoch below the highest seen from the shard on any machine is stale.
    pub strict_epoch: bool,
}

/// A token that is not strictly newer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "stale token of shard {shard_id:?}: ({}, {}) is not newer than {newer}",
    .token.epoch, .token.sequence
)]
pub struct Stale {
    /// Whose.
    pub shard_id: Arc<str>,
    /// What it carried.
    pub token: Mark,
    /// What has been seen.
    pub newer: Newer,
}

/// What makes a token stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newer {
    /// The mark of this machine.
    Mark(Mark),
    /// The highest epoch of this shard, on whatever machine.
    Epoch(i64),
}

impl std::fmt::Display for Newer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mark(mark) => write!(f, "the mark ({}, {})", mark.epoch, mark.sequence),
            Self::Epoch(epoch) => write!(f, "epoch {epoch} of this shard"),
        }
    }
}

/// Why the fence lets a call not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FenceRefusal {
    /// A newer process has been here.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// No token where one is required.
    #[error("shard_id: required by this provider; send a fencing token")]
    TokenRequired,
}

/// A mark that has to move, whatever becomes of the call. Make it durable, then
/// hand it to [`FenceBook::advance`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a passing token moves the mark even if the call then fails"]
pub struct Advance {
    /// Of which machine.
    pub machine: MachineId,
    /// Of which shard.
    pub shard_id: Arc<str>,
    /// To where.
    pub mark: Mark,
    /// The machine is known, so the mark is to be stored.
    pub known: bool,
    /// The shard's highest epoch rises to this; stored even for unknown machines.
    pub epoch: Option<i64>,
}

/// A number for a shard id: few shards, many marks.
type ShardNo = u32;

/// All marks. Those of known machines live as long as the machine's record.
#[derive(Clone, Debug, Default)]
pub struct FenceBook {
    policy: FencePolicy,
    numbers: HashMap<Arc<str>, ShardNo>,
    names: Vec<Arc<str>>,
    marks: HashMap<MachineId, SmallVec<[(ShardNo, Mark); 1]>>,
    /// Kept under `strict_epoch` only.
    epochs: HashMap<Arc<str>, i64>,
    ghosts: Ghosts,
}

impl FenceBook {
    /// No marks yet.
    pub fn new(policy: FencePolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// How strict it is.
    pub const fn policy(&self) -> FencePolicy {
        self.policy
    }

    /// Whether a call with this token may go on, and how the mark moves if so.
    /// `None` in the good case means that the call is unfenced.
    pub fn check(
        &self,
        token: &Token,
        machine: &str,
        known: bool,
    ) -> Result<Option<Advance>, FenceRefusal> {
        if token.is_unfenced() && self.policy.require_token {
            return Err(FenceRefusal::TokenRequired);
        }
        if token.is_unfenced() && !active(Mutant::ZeroTokenFenced) {
            return Ok(None);
        }
        let (shard_id, machine) = scope(&token.shard_id, machine);
        let new = Mark::of(token);
        let stale = |newer| Stale { shard_id: shard_id.clone(), token: new, newer };
        let highest = self.epochs.get(&*shard_id).copied();
        if let Some(highest) = highest.filter(|highest| new.epoch < *highest) {
            return Err(stale(Newer::Epoch(highest)).into());
        }
        let mark = self.mark(&shard_id, machine);
        let negative = active(Mutant::NegativeTokenFenced) && (new.epoch < 0 || new.sequence < 0);
        if let Some(mark) = mark.filter(|mark| !new.is_newer_than(*mark))
            && !active(Mutant::FenceOff)
        {
            return Err(stale(Newer::Mark(mark)).into());
        }
        if negative {
            return Err(stale(Newer::Mark(Mark { epoch: 0, sequence: 0 })).into());
        }
        let rises = self.policy.strict_epoch && highest.is_none_or(|highest| new.epoch > highest);
        let epoch = rises.then_some(new.epoch);
        Ok(Some(Advance { machine: machine.into(), shard_id, mark: new, known, epoch }))
    }

    /// Moves a mark. A mark never moves back, in whatever order calls of one
    /// machine are written down.
    pub fn advance(&mut self, advance: Advance) {
        let Advance { machine, shard_id, mark, known, epoch } = advance;
        if let Some(epoch) = epoch {
            self.raise_epoch(shard_id.clone(), epoch);
        }
        if known {
            self.promote(&machine);
            self.set(machine, &shard_id, mark);
        } else {
            self.ghosts.set(machine, shard_id, mark);
        }
    }

    /// The mark of a pair, of a known machine or not.
    pub fn mark(&self, shard_id: &str, machine: &str) -> Option<Mark> {
        let known = || {
            let shard = self.numbers.get(shard_id)?;
            let marks = self.marks.get(machine)?;
            marks.iter().find(|(number, _)| number == shard).map(|(_, mark)| *mark)
        };
        known().max(self.ghosts.get(machine, shard_id))
    }

    /// The highest epoch seen from a shard; kept under `strict_epoch` only.
    pub fn highest_epoch(&self, shard_id: &str) -> Option<i64> {
        self.epochs.get(shard_id).copied()
    }

    /// The machine has a record now: its marks are to be stored. Returns those
    /// that were not stored yet.
    pub fn promote(&mut self, machine: &MachineId) -> Vec<(Arc<str>, Mark)> {
        let promoted = self.ghosts.take(machine);
        for (shard_id, mark) in &promoted {
            self.set(machine.clone(), shard_id, *mark);
        }
        promoted
    }

    /// The record is gone, and its marks with it.
    pub fn forget(&mut self, machine: &str) {
        self.marks.remove(machine);
        self.ghosts.take(&machine.into());
    }

    /// Takes a stored mark.
    pub fn load(&mut self, machine: MachineId, shard_id: &str, mark: Mark) {
        self.set(machine, shard_id, mark);
        if self.policy.strict_epoch {
            self.raise_epoch(shard_id.into(), mark.epoch);
        }
    }

    /// Takes a stored highest epoch.
    pub fn load_epoch(&mut self, shard_id: &str, epoch: i64) {
        if self.policy.strict_epoch {
            self.raise_epoch(shard_id.into(), epoch);
        }
    }

    /// The marks of known machines, in no order.
    pub fn marks(&self) -> impl Iterator<Item = (&MachineId, &Arc<str>, Mark)> {
        self.marks.iter().flat_map(move |(machine, marks)| {
            let named = move |(number, mark): &(ShardNo, Mark)| {
                self.names.get(*number as usize).map(|name| (machine, name, *mark))
            };
            marks.iter().filter_map(named)
        })
    }

    /// The highest epoch of each shard, in no order.
    pub fn epochs(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.epochs.iter().map(|(shard, epoch)| (shard, *epoch))
    }

    /// How many marks of unknown machines are held.
    pub fn ghosts(&self) -> usize {
        self.ghosts.len()
    }

    fn set(&mut self, machine: MachineId, shard_id: &str, mark: Mark) {
        let shard = self.number(shard_id);
        let marks = self.marks.entry(machine).or_default();
        match marks.iter_mut().find(|(number, _)| *number == shard) {
            Some((_, old)) if active(Mutant::MarkOnRefusal) => *old = mark,
            Some((_, old)) => *old = mark.max(*old),
            None => marks.push((shard, mark)),
        }
    }

    fn number(&mut self, shard_id: &str) -> ShardNo {
        if let Some(number) = self.numbers.get(shard_id) {
            return *number;
        }
        let (name, number) = (Arc::<str>::from(shard_id), self.names.len() as ShardNo);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    fn raise_epoch(&mut self, shard_id: Arc<str>, epoch: i64) {
        let highest = self.epochs.entry(shard_id).or_insert(epoch);
        *highest = epoch.max(*highest);
    }
}

/// Marks cross neither shards nor machines.
fn scope<'a>(shard_id: &Arc<str>, machine: &'a str) -> (Arc<str>, &'a str) {
    if active(Mutant::FenceGlobal) {
        return ("".into(), "");
    }
    (shard_id.clone(), if active(Mutant::FencePerShard) { "" } else { machine })
}
