//! The order of checks of a mutation (provider chapter §1, steps 3 to 6).

use bigfleet_model::MachineState;

use super::{
    fence::{Advance, FenceBook, FenceRefusal, Mark, Stale},
    kind::Kind,
    lifecycle::{Event, Reject, Replay, Step, step},
    token::Token,
};
use crate::mutant::{Mutant, active};

/// A mutation whose arguments are sound.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What it asks for.
    pub kind: Kind,
    /// Of which machine.
    pub machine: &'a str,
    /// For which cluster; of a Configure.
    pub cluster: Option<&'a str>,
    /// Who asks.
    pub token: &'a Token,
}

/// What is on record about the machine of a call.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Where it stands.
    pub state: MachineState,
    /// Whom it is bound to.
    pub cluster: Option<&'a str>,
    /// An operation of the call's kind is on record.
    pub recorded: bool,
}

/// Why a mutation is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not let through; comes before all else, so that a zombie learns nothing.
    #[error(transparent)]
    Fence(#[from] FenceRefusal),
    /// No such machine. No call makes one.
    #[error("no machine {0:?} here")]
    NotFound(String),
    /// Not from here.
    #[error(transparent)]
    Lifecycle(#[from] Reject),
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Admission {
    /// How the mark moves: durable before any answer, also before a refusal.
    pub advance: Option<Advance>,
    /// [`Step::Replay`] or [`Step::Start`], or why not.
    pub outcome: Result<Step, Refused>,
}

/// Judges a call: fence, existence, replay, position, in this order. Call it
/// where nothing else moves the machine until the result is written down.
pub fn admit(fence: &FenceBook, call: Call<'_>, known: Option<Known<'_>>) -> Admission {
    let beyond = || beyond_the_fence(call, known);
    let unfenced = match known {
        None => active(Mutant::FenceAfterExistence),
        Some(_) => active(Mutant::FenceAfterReplay) && beyond() == Ok(Step::Replay),
    };
    if unfenced {
        return Admission { advance: None, outcome: beyond() };
    }
    match fence.check(call.token, call.machine, known.is_some()) {
        Ok(advance) => {
            let outcome = beyond();
            let moves = outcome.is_ok() || !active(Mutant::MarkOnlyOnSuccess);
            Admission { advance: advance.filter(|_| moves), outcome }
        }
        Err(refusal) => {
            let advance = match &refusal {
                FenceRefusal::Stale(stale) if active(Mutant::MarkOnRefusal) => {
                    Some(refused_mark(call, known, stale))
                }
                _ => None,
            };
            Admission { advance, outcome: Err(refusal.into()) }
        }
    }
}

fn beyond_the_fence(call: Call<'_>, known: Option<Known<'_>>) -> Result<Step, Refused> {
    let Some(known) = known else {
        return Err(Refused::NotFound(call.machine.to_owned()));
    };
    let other = call.kind == Kind::Configure && call.cluster != known.cluster;
    let replay = match known.recorded {
        false => Replay::Nothing,
        true if other => Replay::OtherCluster,
        true => Replay::Same,
    };
    Ok(step(known.state, Event::Call(call.kind, replay))?)
}

fn refused_mark(call: Call<'_>, known: Option<Known<'_>>, stale: &Stale) -> Advance {
    let mark: Mark = stale.token;
    let (machine, shard_id) = (call.machine.into(), stale.shard_id.clone());
    Advance { machine, shard_id, mark, known: known.is_some(), epoch: None }
}
