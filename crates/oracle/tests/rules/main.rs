//! One small world per rule of the specification.

mod acquire;
mod credit;
mod cycle;
mod domain;
mod fold;
mod outgrown;
mod phase2;
mod phase3;
mod quiet;
mod seen;
mod verdict;
