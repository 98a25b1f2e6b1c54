//! Term and vote, replaced whole on every change.

use std::path::Path;

use prost::Message;

use super::{Disk, LogError, frame};

/// What a replica must not forget before it answers anybody: the greatest term
/// it has seen, and whom it voted for in it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HardState {
    /// Consensus term.
    #[prost(uint64, tag = "1")]
    pub term: u64,
    /// Whether a vote was given in this term.
    #[prost(bool, tag = "2")]
    pub voted: bool,
    /// First half of the member voted for.
    #[prost(fixed64, tag = "3")]
    pub node: u64,
    /// Second half of the member voted for.
    #[prost(fixed64, tag = "4")]
    pub incarnation: u64,
}

impl HardState {
    pub(super) fn load(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, LogError> {
        let bytes = disk.read_if_exists(path).map_err(LogError::io("reading", path))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let scan = frame::scan(&bytes, 0);
        let [(payload, end)] = scan.frames.as_slice() else {
            return Err(LogError::corrupt(path, "it fails its checksum"));
        };
        if *end != bytes.len() as u64 {
            return Err(LogError::corrupt(path, "bytes follow the hard state"));
        }
        let decoded = Self::decode(*payload);
        decoded.map(Some).map_err(|error| LogError::corrupt(path, error.to_string()))
    }

    /// Replaced by rename, so a torn write is never seen: a bad checksum is damage.
    pub(super) fn store(&self, disk: &dyn Disk, path: &Path) -> Result<(), LogError> {
        let bytes = frame::encode(0, &self.encode_to_vec());
        disk.replace(path, &bytes).map_err(LogError::io("writing", path))
    }
}
