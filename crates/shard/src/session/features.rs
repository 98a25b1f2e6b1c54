//! What an operator does or understands beyond the base messages.

use super::cut;

/// Most feature names of one operator that are kept for display.
const MAX_NAMES: usize = 32;

/// Most of a foreign name that is kept, in bytes.
pub(super) const MAX_NAME: usize = 64;

/// Named in Hello (wire chapter §6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    /// Sends the second ReclaimAck.
    pub(crate) final_reclaim_ack: bool,
    /// Takes NeedStatusUpdate.
    pub(crate) need_status: bool,
}

impl Features {
    /// Unknown names mean nothing here.
    pub(super) fn of(names: &[String]) -> Self {
        let has = |name| names.iter().any(|known| known == name);
        Self { final_reclaim_ack: has("final-reclaim-ack"), need_status: has("need-status") }
    }
}

/// The names as sent, as far as a peer may fill our memory.
pub(super) fn kept(names: Vec<String>) -> Vec<String> {
    names.into_iter().take(MAX_NAMES).map(|name| cut(name, MAX_NAME)).collect()
}
