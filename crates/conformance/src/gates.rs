//! Gates: what a target can do, found by trying it on one machine.

use std::collections::BTreeMap;

use serde::Serialize;
use tonic::Code;

use crate::{
    case::{Binding, CREATE_FAULT, Case, Listing, State},
    outcome::Outcome,
    shard::Token,
};

/// Something not every target can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// It has SPECULATIVE slots.
    Slot,
    /// Delete works.
    Del,
    /// The revision advances.
    Rev,
    /// A cut page can be continued.
    Page,
    /// Zero tokens are taken.
    Zero,
    /// It offers wire-driven faults.
    Flt,
    /// The suite may kill and reboot it.
    Dur,
}

impl Gate {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Slot, Self::Del, Self::Rev, Self::Page, Self::Zero, Self::Flt, Self::Dur];

    /// As reports write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Del => "del",
            Self::Rev => "rev",
            Self::Page => "page",
            Self::Zero => "zero",
            Self::Flt => "flt",
            Self::Dur => "dur",
        }
    }

    /// Why a test is skipped where it is closed.
    #[must_use]
    pub fn closed(self) -> &'static str {
        match self {
            Self::Slot => "gate slot is closed: the fleet has no SPECULATIVE slots",
            Self::Del => "gate del is closed: Delete is UNIMPLEMENTED",
            Self::Rev => "gate rev is closed: the revision does not advance",
            Self::Page => "gate page is closed: cut lists cannot be continued",
            Self::Zero => "gate zero is closed: zero tokens are refused",
            Self::Flt => "gate flt is closed: the target offers no wire-driven faults",
            Self::Dur => "gate dur is closed: give --target-cmd with {addr} and {state}",
        }
    }
}

/// Which gates are open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "see Gate")]
#[expect(clippy::struct_excessive_bools, reason = "gates are independent of each other")]
pub struct Gates {
    pub slot: bool,
    pub del: bool,
    pub rev: bool,
    pub page: bool,
    pub zero: bool,
    pub flt: bool,
    pub dur: bool,
}

impl Gates {
    /// All open: what the kit offers, and a broken kit must not hide behind.
    #[must_use]
    pub fn all() -> Self {
        Self { slot: true, del: true, rev: true, page: true, zero: true, flt: true, dur: true }
    }

    /// Whether this one is open.
    #[must_use]
    pub fn is_open(self, gate: Gate) -> bool {
        match gate {
            Gate::Slot => self.slot,
            Gate::Del => self.del,
            Gate::Rev => self.rev,
            Gate::Page => self.page,
            Gate::Zero => self.zero,
            Gate::Flt => self.flt,
            Gate::Dur => self.dur,
        }
    }

    /// By name, for a report.
    #[must_use]
    pub fn by_name(self) -> BTreeMap<&'static str, bool> {
        Gate::ALL.iter().map(|&gate| (gate.name(), self.is_open(gate))).collect()
    }
}

/// Tries what the target can do. A target that cannot even be walked gets what
/// was found so far; its tests then say what is wrong.
pub(crate) async fn probe(case: &Case, slots: bool, dur: bool) -> Gates {
    let mut gates = Gates { dur, ..Gates::default() };
    // The reason is told again, with its evidence, by the tests.
    let _ = try_all(case, slots, &mut gates).await;
    gates
}

async fn try_all(case: &Case, slots: bool, gates: &mut Gates) -> Outcome {
    let before = case.list(Listing::default()).await?;
    let sound = |machine: &&crate::case::Machine| !machine.labels.contains_key(CREATE_FAULT);
    let in_state = |state| before.machines.iter().filter(sound).find(|m| m.state() == state);
    gates.flt = before.machines.iter().any(|machine| machine.labels.contains_key(CREATE_FAULT));
    let slot = in_state(State::Speculative).filter(|_| slots);
    gates.slot = slot.is_some();
    gates.page = continues(case, before.machines.len()).await?;
    let Some(machine) = slot.or_else(|| in_state(State::Idle)).map(|machine| machine.id.clone())
    else {
        return Ok(());
    };

    let binding = || Binding::to(case.cluster("gates"));
    if gates.slot {
        case.create_and_wait(&machine).await?;
    } else {
        case.configure_and_wait(&machine, binding()).await?;
    }
    let after = case.list(Listing::default()).await?.revision;
    gates.rev = !after.is_empty() && after != before.revision;
    let unfenced = if gates.slot {
        case.create_as(&machine, &Token::zero()).await
    } else {
        case.configure_as(&machine, binding(), &Token::zero()).await
    };
    gates.zero = unfenced.code() == Code::Ok;
    if !gates.slot {
        case.drain_and_wait(&machine, 0).await?;
        // A fleet without slots never gets a machine back by Create.
        return Ok(());
    }
    gates.del = case.delete(&machine).await.code() == Code::Ok;
    if gates.del {
        case.settle(&machine, State::Speculative).await?;
    }
    Ok(())
}

/// Whether a page of one is followed by another machine.
async fn continues(case: &Case, fleet: usize) -> Outcome<bool> {
    if fleet < 3 {
        return Ok(false);
    }
    let first = case.list(Listing::default().max(1)).await?;
    let second = case.list(Listing::default().max(1).since(&first.revision)).await?;
    let id = |list: &[crate::case::Machine]| list.first().map(|machine| machine.id.clone());
    let (first, second) = (id(&first.machines), id(&second.machines));
    Ok(first.is_some() && second.is_some() && first != second)
}
