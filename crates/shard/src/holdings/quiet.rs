//! When a key may be let go of: nothing of ours can reach its machines any more.

use bigfleet_model::ClusterId;

use super::{Domain, Keys};

/// An action that is queued or under way, a call without an answer included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Of the machine, while its provider has it unbound.
    pub domain: Option<Domain>,
    /// That the machine is bound to, or that it is on its way to.
    pub cluster: Option<ClusterId>,
}

/// Those of `releasing` that nothing is queued or under way on. `announced`: the
/// provider has answered this process's epoch, and refuses its predecessors' calls.
#[must_use]
pub fn quiet(releasing: &Keys, busy: impl IntoIterator<Item = Busy>, announced: bool) -> Keys {
    if !announced || releasing.is_empty() {
        return Keys::default();
    }
    let mut quiet = releasing.clone();
    for Busy { domain, cluster } in busy {
        if let Some(domain) = domain {
            quiet.domains.remove(&domain);
        }
        if let Some(cluster) = cluster {
            quiet.clusters.remove(&cluster);
        }
    }
    quiet
}
