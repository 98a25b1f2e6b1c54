//! The oracle: the decision engine's specification (`docs/spec/engine.md`)
//! written down once more, plainly and slowly, to be compared with the engine on
//! many random worlds.
//!
//! Nothing is cached and nothing is kept up to date: whatever a rule asks for is
//! computed anew from the machines, the needs and who claims what. Each file
//! follows one section; `docs/decisions/0009-readings-of-the-engine-chapter.md`
//! lists where the text leaves a choice and which one was taken.

mod acquire;
mod credit;
mod cycle;
mod domain;
mod fold;
pub mod invariants;
mod need;
mod order;
mod outgrown;
mod overlay;
mod phase1;
mod phase2;
mod phase3;
mod prepare;
mod share;
mod spread;
mod verdict;
pub mod worlds;

use bigfleet_engine::{CycleInput, CycleOutput};

use crate::cycle::Cycle;

/// One cycle (§3).
pub fn decide(input: &CycleInput) -> CycleOutput {
    let mut cycle = Cycle::new(input);
    let demand = prepare::demand(input);
    phase1::assign(&mut cycle, demand);
    cycle.keep_what_is_left();
    let inversion = phase2::invert(&cycle);
    let reclaim = phase3::reclaim(&cycle, &inversion);
    verdict::output(&cycle, &inversion, reclaim)
}
