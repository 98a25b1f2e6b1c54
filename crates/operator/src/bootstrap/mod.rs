//! What a machine is told to join the cluster (kubernetes chapter §5).
//!
//! [`Renderer`] answers the shard's bootstrap requests. It takes processor time
//! and nothing else: join tokens are minted ahead of time by [`tokens`], and a
//! template that changes on disk is read by a task of its own.
//!
//! Blobs, templates and tokens are secrets: nothing here logs them, and no
//! `Debug` shows them.

mod clock;
mod data;
mod renderer;
mod source;
pub mod template;
pub mod tokens;

pub use renderer::{Error, JoinSettings, Observer, Outcome, Reload, Renderer, Settings};
