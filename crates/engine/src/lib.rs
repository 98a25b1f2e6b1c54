//! The decision engine: once per cycle it gets one consistent picture of
//! inventory and demand and returns the actions that close the gap between bound
//! and demanded capacity (`docs/spec/engine.md`).
//!
//! Pure: no async, no I/O, no clock, no logging. Equal input gives equal output,
//! byte for byte.

pub mod action;
mod ask;
mod both;
mod decide;
mod decided;
mod engine;
mod explain;
mod full_pass;
mod handle;
mod hints;
pub mod input;
mod inventory;
#[cfg(feature = "json")]
pub mod json;
mod ledger;
pub mod output;
mod phase1;
mod phase2;
mod phase3;
mod phase_log;
mod reader;
mod report;
mod restamp;
mod rows;
#[cfg(test)]
mod testing;
mod trace;
mod verdict;
mod what_if;
mod world;

pub use action::{Action, ActionCounts, ActionKind};
pub use both::Difference;
pub use decide::decide;
pub use engine::{Engine, Phase};
pub use explain::{Ahead, DomainCoverage, Explanation, Funnel, Supply};
pub use hints::{Available, Hints};
pub use input::{
    CycleInput, Drain, GangKey, HeldBack, NeedKey, NoAcquire, Phase2Options, ReleasePolicy, Time,
    Tracked,
};
pub use inventory::{Census, Comparer, Comparison, Count, MachineView, Seen};
pub use ledger::{Entry, Ledger, Shortage};
pub use output::{CycleOutput, Detail, Outcome, Reason, Unresolved, Verdict};
pub use phase_log::{PhaseLog, ShortGang};
pub use phase2::victim_score;
pub use reader::Reader;
pub use rows::{Preemption, Row};
pub use trace::Trace;
pub use what_if::{Rehearsal, WhatIf, WhatIfMachine};
