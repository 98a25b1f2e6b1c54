//! Demand: CapacityRequests in, one full-replacement roll-up out (kubernetes
//! chapter §3).
//!
//! [`Request`] is what is kept of an object, already translated; [`Fold`] sums
//! requests per need and can take one back; [`Ledger`] follows the cache with it
//! and knows which requests wait to be acknowledged. All of it is synchronous and
//! knows no API server; [`Cycle`] is the shell.

mod condition;
mod cycle;
mod fold;
mod identity;
mod intern;
mod ledger;
mod message;
mod request;
mod row;
mod skipped;
mod stamp;
mod translate;
mod uid;
mod vector;

pub use condition::Condition;
pub use cycle::{Cycle, Demanded, Parts, TEND_EVERY};
pub use fold::Fold;
pub use identity::NeedIdentity;
pub use intern::Interner;
pub use ledger::{Candidate, Ledger, News};
pub use message::RollUp;
pub use request::{Phase, Projector, Request};
pub use skipped::{Skipped, Untranslatable};
pub use stamp::Stamps;
pub use translate::{Demand, Translator};
pub use uid::Uid;
pub use vector::Vector;
