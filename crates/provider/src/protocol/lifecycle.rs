//! How a machine moves: pure, one step at a time (provider chapter §§1, 3).

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, HostRef, Machine, MachineState};

use super::kind::Kind;
use crate::mutant::{Mutant, active};

/// What the record of an earlier call says about this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replay {
    /// No operation of this kind is on record.
    Nothing,
    /// One is, and it asked for the same.
    Same,
    /// One is: a Configure for another cluster.
    OtherCluster,
}

/// What happens to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A call that the fence let pass.
    Call(Kind, Replay),
    /// The work of an operation succeeded. `current`: its id is still the one on
    /// record for this kind.
    Done {
        /// Which work.
        kind: Kind,
        /// See above.
        current: bool,
    },
    /// The work of an operation failed, ran out of time or was interrupted.
    Failed {
        /// Which work.
        kind: Kind,
        /// As for [`Event::Done`].
        current: bool,
    },
    /// Its host is gone.
    Lost {
        /// It can be bought again.
        elastic: bool,
    },
    /// It broke by itself.
    Broke,
    /// What was left of a failed machine has been cleaned away.
    Repaired {
        /// The host was destroyed, or there was none, so a slot is left; else the
        /// host was recycled.
        elastic: bool,
    },
}

/// What becomes of a part of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// It stays as it is.
    Keep,
    /// It is replaced by what came with the event.
    Set,
    /// It is emptied.
    Clear,
}

/// How a record changes, in one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Effects {
    /// The next state.
    pub to: MachineState,
    /// Cluster and metadata, which appear and vanish together.
    pub binding: Field,
    /// The host.
    pub host: Field,
    /// `last_error`.
    pub error: Field,
    /// Forget the operations on record.
    pub forget_operations: bool,
}

/// What an event asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Step {
    /// Answer the recorded id and the record as it is; no work.
    Replay,
    /// Mint an id, change the record, start the work.
    Start(Effects),
    /// Change the record.
    Move(Effects),
    /// Too late: nothing changes.
    Discard,
    /// A Create succeeded after its machine had failed: keep the host on the
    /// failed record, so that the repair destroys it.
    KeepHost,
    /// A Create succeeded and no record can take its host: destroy it.
    Orphan,
}

/// Why a call is refused. The record stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// The machine is not where this kind starts.
    #[error(
        "cannot {kind} while {}: {kind} starts from {}",
        .state.wire_name(), .kind.source().wire_name()
    )]
    Position {
        /// The call.
        kind: Kind,
        /// Where the machine is.
        state: MachineState,
    },
    /// It serves another cluster; drain it first.
    #[error("already configured for another cluster: drain it first")]
    OtherCluster,
}

/// The one step that follows.
pub fn step(state: MachineState, event: Event) -> Result<Step, Reject> {
    match event {
        Event::Call(kind, replay) => call(state, kind, replay),
        Event::Done { kind, current } => Ok(done(state, kind, current)),
        Event::Failed { kind, current } => Ok(match current && state == kind.transitional() {
            true if active(Mutant::ErrorGoesBack) => Step::Move(moving(kind.source())),
            true => fail(),
            false => Step::Discard,
        }),
        Event::Lost { elastic } => Ok(match state {
            MachineState::Idle if elastic => {
                Step::Move(Effects { host: Field::Clear, ..moving(MachineState::Speculative) })
            }
            MachineState::Idle | MachineState::Configured => fail(),
            // Work in flight finds out by itself; a failed one is repaired.
            _ => Step::Discard,
        }),
        Event::Broke if state == MachineState::Failed => Ok(Step::Discard),
        Event::Broke => Ok(fail()),
        Event::Repaired { elastic } if state == MachineState::Failed => {
            let (to, host) = match elastic {
                true => (MachineState::Speculative, Field::Clear),
                false => (MachineState::Idle, Field::Keep),
            };
            let (binding, error) = (Field::Clear, Field::Clear);
            Ok(Step::Move(Effects { to, binding, host, error, forget_operations: true }))
        }
        Event::Repaired { .. } => Ok(Step::Discard),
    }
}

fn call(state: MachineState, kind: Kind, replay: Replay) -> Result<Step, Reject> {
    let replays = state == kind.transitional() || state == kind.target();
    match replay {
        Replay::Same if replays && !rerun(state, kind) => return Ok(Step::Replay),
        Replay::OtherCluster if replays && active(Mutant::OtherClusterOk) => {
            return Ok(Step::Replay);
        }
        // OK would tell the shard that the machine serves a cluster it does not.
        Replay::OtherCluster if replays => return Err(Reject::OtherCluster),
        _ => {}
    }
    if state != kind.source() && !rerun(state, kind) && !misplaced(state, kind) {
        return Err(Reject::Position { kind, state });
    }
    let binding = if kind == Kind::Configure { Field::Set } else { Field::Keep };
    let transitional = match kind {
        Kind::Configure if active(Mutant::WrongTransitional) => MachineState::Draining,
        Kind::Drain if active(Mutant::WrongTransitional) => MachineState::Configuring,
        Kind::Delete if active(Mutant::WrongTransitional) => MachineState::Creating,
        _ => kind.transitional(),
    };
    Ok(Step::Start(Effects { binding, ..moving(transitional) }))
}

fn done(state: MachineState, kind: Kind, current: bool) -> Step {
    let late = !(current && state == kind.transitional());
    let applied = late && state == MachineState::Failed && active(Mutant::LateSuccessApplied);
    if late && !applied {
        return match kind {
            Kind::Create if state == MachineState::Failed => Step::KeepHost,
            Kind::Create => Step::Orphan,
            _ => Step::Discard,
        };
    }
    let moving = Effects { error: Field::Clear, ..moving(kind.target()) };
    Step::Move(match kind {
        Kind::Create if active(Mutant::IdleSkipped) => {
            Effects { host: Field::Set, ..self::moving(MachineState::Configured) }
        }
        Kind::Create => Effects { host: Field::Set, ..moving },
        Kind::Configure if active(Mutant::BindingLost) => {
            Effects { binding: Field::Clear, ..moving }
        }
        Kind::Configure => moving,
        Kind::Drain if active(Mutant::BindingKept) => moving,
        Kind::Drain => Effects { binding: Field::Clear, ..moving },
        Kind::Delete if active(Mutant::HostKept) => moving,
        Kind::Delete => Effects { host: Field::Clear, ..moving },
    })
}

const fn moving(to: MachineState) -> Effects {
    let (binding, host, error) = (Field::Keep, Field::Keep, Field::Keep);
    Effects { to, binding, host, error, forget_operations: false }
}

/// Host, cluster and metadata stay: they are the evidence.
const fn fail() -> Step {
    Step::Move(Effects { error: Field::Set, ..moving(MachineState::Failed) })
}

fn rerun(state: MachineState, kind: Kind) -> bool {
    state == kind.target() && active(Mutant::ReplayReruns)
}

fn misplaced(state: MachineState, kind: Kind) -> bool {
    match kind {
        Kind::Drain => state == MachineState::Idle && active(Mutant::DrainIdleRuns),
        Kind::Delete => state == MachineState::Speculative && active(Mutant::DeleteSpeculativeRuns),
        Kind::Configure => state == MachineState::Failed && active(Mutant::FailedAcceptsConfigure),
        Kind::Create => false,
    }
}

/// Whom a machine is bound to, and what the shard wants to read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The cluster.
    pub cluster: ClusterId,
    /// Echoed byte for byte, never read.
    pub metadata: BTreeMap<String, String>,
}

/// What came with an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Of a Create that is done.
    pub host: Option<HostRef>,
    /// Of a Configure.
    pub binding: Option<Binding>,
    /// Of a failure.
    pub error: String,
}

/// Longest `last_error`, in bytes.
const MAX_ERROR: usize = 1024;

impl Effects {
    /// Changes the record. Operations are forgotten by whoever keeps them.
    pub fn apply(self, machine: &mut Machine, news: News) {
        machine.state = self.to;
        match self.host {
            Field::Keep => {}
            Field::Set => machine.host = news.host,
            Field::Clear => machine.host = None,
        }
        match self.binding {
            Field::Keep => {}
            Field::Set => bind(machine, news.binding),
            Field::Clear => {
                machine.cluster = None;
                #[cfg(feature = "mutants")]
                remember(machine);
                if !active(Mutant::MetadataKept) {
                    machine.shard_metadata.clear();
                }
            }
        }
        match self.error {
            Field::Keep => {}
            Field::Set => machine.last_error = error_text(news.error),
            Field::Clear => machine.last_error.clear(),
        }
    }
}

fn bind(machine: &mut Machine, binding: Option<Binding>) {
    let Some(Binding { cluster, metadata }) = binding else {
        machine.cluster = None;
        machine.shard_metadata.clear();
        return;
    };
    machine.shard_metadata = metadata;
    machine.cluster = Some(cluster);
    #[cfg(feature = "mutants")]
    garble(machine);
}

/// What drained machines carried, for the mutant that merges: the record itself
/// must not show it.
#[cfg(feature = "mutants")]
static DRAINED: std::sync::Mutex<BTreeMap<bigfleet_model::MachineId, BTreeMap<String, String>>> =
    std::sync::Mutex::new(BTreeMap::new());

#[cfg(feature = "mutants")]
fn remember(machine: &Machine) {
    if active(Mutant::MetadataMerged)
        && let Ok(mut drained) = DRAINED.lock()
    {
        drained.insert(machine.id.clone(), machine.shard_metadata.clone());
    }
}

/// The ways not to echo byte for byte.
#[cfg(feature = "mutants")]
fn garble(machine: &mut Machine) {
    let metadata = &mut machine.shard_metadata;
    let cut = |metadata: &mut BTreeMap<String, String>, keys: usize| {
        while metadata.len() > keys {
            metadata.pop_last();
        }
    };
    if active(Mutant::MetadataWhitelisted) {
        metadata.retain(|key, _| key.starts_with("bigfleet.lucy.sh/"));
    }
    if active(Mutant::MetadataNulCut) {
        metadata
            .values_mut()
            .for_each(|value| value.truncate(value.find('\0').unwrap_or(value.len())));
    }
    if active(Mutant::MetadataTrimmed) {
        metadata.values_mut().for_each(|value| *value = value.trim().to_owned());
    }
    if active(Mutant::MetadataFirstFifty) {
        cut(metadata, 50);
    }
    if active(Mutant::MetadataKeysCut) {
        cut(metadata, 500);
    }
    if active(Mutant::MetadataValuesCut) {
        let end = |value: &str| value.floor_char_boundary(4096);
        metadata.values_mut().for_each(|value| value.truncate(end(value)));
    }
    if active(Mutant::MetadataMerged)
        && let Ok(mut drained) = DRAINED.lock()
    {
        for (key, value) in drained.remove(&machine.id).unwrap_or_default() {
            metadata.entry(key).or_insert(value);
        }
    }
}

/// Never empty, never long.
fn error_text(mut text: String) -> String {
    if active(Mutant::FailedWithoutText) {
        return String::new();
    }
    if text.is_empty() {
        return "failed for a reason that was not told".to_owned();
    }
    text.truncate(text.floor_char_boundary(MAX_ERROR));
    text
}
