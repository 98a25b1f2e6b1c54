//! How long ago a shard was heard (coordinator chapter §7). Silence never removes a shard
//! nor moves what it has: it may be healthy and cut off.

use std::time::Duration;

/// By the age of the last report that counted, on a clock that does not jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveness {
    /// Heard lately.
    Live,
    /// Not heard for a while.
    Stale,
    /// Not heard for long; its soft state is gone.
    Expired,
    /// Not heard by this leader.
    Unknown,
}

impl Liveness {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Live, Self::Stale, Self::Expired, Self::Unknown];

    /// As a metric's label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

/// `--shard-stale-after`, `--shard-expire-after`.
#[derive(Clone, Copy, Debug)]
pub struct LivenessLimits {
    /// Live up to this age.
    pub stale_after: Duration,
    /// Stale up to this age.
    pub expire_after: Duration,
}

impl Default for LivenessLimits {
    fn default() -> Self {
        Self { stale_after: Duration::from_secs(30), expire_after: Duration::from_secs(300) }
    }
}

impl LivenessLimits {
    /// Of a shard that was heard this long ago.
    #[must_use]
    pub fn of(self, age: Option<Duration>) -> Liveness {
        match age {
            None => Liveness::Unknown,
            Some(age) if age <= self.stale_after => Liveness::Live,
            Some(age) if age <= self.expire_after => Liveness::Stale,
            Some(_) => Liveness::Expired,
        }
    }
}
