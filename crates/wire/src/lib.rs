//! The wire: messages, clients and servers generated from `api/proto`.
//!
//! Nothing here is written by hand but how secrets are shown: not at all. Conversion to the types that the rest of
//! the system works with, and every check on foreign input, is in
//! `bigfleet-model`.

#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::nursery, unreachable_pub)]

mod secret;

/// Package `bigfleet.v1alpha1`.
pub mod v1alpha1 {
    include!(concat!(env!("OUT_DIR"), "/bigfleet.v1alpha1.rs"));
}

/// Encoded `FileDescriptorSet` of all files, for reflection and contract tests.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Largest message that servers and clients send or accept, in bytes.
///
/// The 4 MiB default of gRPC libraries turns a big roll-up into a silent
/// reconnect loop that freezes demand.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024 * 1024;
