//! Numbers that nobody else draws.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::OperationId,
};

/// Seeded by the system, unlike any other in this process or another.
pub(crate) fn number() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(DRAWN.fetch_add(1, Ordering::Relaxed))
}

/// Three quarters of a duration up to five quarters.
pub(crate) fn jittered(duration: Duration) -> Duration {
    let share = u32::try_from(number() % 512).unwrap_or_default();
    duration / 4 * 3 + duration / 1024 * share
}

/// Mints operation ids that never repeat: over restarts, lost stores and sibling
/// providers, for a backend takes them as client tokens.
#[derive(Debug)]
pub(crate) struct OperationIds {
    process: (u64, u64),
    next: AtomicU64,
}

impl OperationIds {
    pub(crate) fn new() -> Self {
        Self { process: (number(), number()), next: AtomicU64::new(1) }
    }

    pub(crate) fn mint(&self) -> OperationId {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let (high, low) = match active(Mutant::OperationCounterRestarts) {
            true => (0, 0),
            false => self.process,
        };
        let next = if active(Mutant::IdsShared) { 1 } else { next };
        let text = format!("op-{high:016x}{low:016x}-{next:x}");
        // 3 + 32 + 1 + 16 characters at most, all printable.
        OperationId::parse(&text).unwrap_or_else(|| unreachable!("{text} is an operation id"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ_within_and_between_processes() {
        let (one, other) = (OperationIds::new(), OperationIds::new());
        let ids: HashSet<_> = (0..1000).flat_map(|_| [one.mint(), other.mint()]).collect();
        assert_eq!(ids.len(), 2000);
    }

    #[test]
    fn jitter_stays_around() {
        let second = Duration::from_secs(1);
        for _ in 0..1000 {
            let jittered = jittered(second);
            assert!(jittered >= second / 4 * 3 && jittered <= second / 4 * 5, "{jittered:?}");
        }
    }
}
