//! The rules of provider chapter §§1, 2, 3 and 6, without I/O, tasks or a clock.
//!
//! A server holds one [`FenceBook`], one [`OpBook`] and one [`RevIndex`] beside
//! its machines. For a mutation it asks [`admit`] under its lock, stores what
//! that returns, and only then changes its books and answers:
//!
//! ```
//! use bigfleet_model::MachineState;
//! use bigfleet_provider::protocol::{Call, FenceBook, FencePolicy, Kind, Known, Step, Token, admit};
//!
//! let mut fence = FenceBook::new(FencePolicy::default());
//! let token = Token::new("shard-a", 1, 1);
//! let call = Call { kind: Kind::Create, machine: "m-1", cluster: None, token: &token };
//! let known = Known { state: MachineState::Speculative, cluster: None, recorded: false };
//!
//! let admission = admit(&fence, call, Some(known));
//! // A store would commit the mark here, together with what follows.
//! if let Some(advance) = admission.advance {
//!     fence.advance(advance);
//! }
//! assert!(matches!(admission.outcome, Ok(Step::Start(_))));
//! ```

mod admission;
mod arguments;
mod fence;
mod ghosts;
mod kind;
mod lifecycle;
mod operations;
mod page;
mod revision;
mod token;

pub use admission::{Admission, Call, Known, Refused, admit};
pub use arguments::{BadArgument, Caps};
pub use fence::{Advance, FenceBook, FencePolicy, FenceRefusal, Mark, Newer, Stale};
pub use ghosts::GHOSTS;
pub use kind::Kind;
pub use lifecycle::{Binding, Effects, Event, Field, News, Reject, Replay, Step, step};
pub use operations::{OpBook, Operation, OperationId};
pub use page::{Page, StateSet};
pub use revision::{Cursor, Garbled, RevIndex, Revision};
pub use token::Token;
