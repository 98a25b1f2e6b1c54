//! Backups (coordinator chapter §10): the leader's exports, and the one reader of
//! whatever can be restored.
//!
//! A backup is two artefacts, `meta.json` and `state`: in a directory, as exports are
//! written, or in a tar, in this order, as `bigfleetctl snapshot save` writes it.
//! [`consensus::Restore`](crate::consensus::Restore) puts one into a data directory.

mod export;
mod read;

pub use export::{ExportOptions, export, export_once};
pub use read::{Backup, BackupError, Integrity};
