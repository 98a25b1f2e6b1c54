//! Why a need is unmet, and what to do about it (experience chapter §3.4).

use bigfleet_wire::v1alpha1::{UnmetDetail, UnmetReason};

/// What a reader is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// As the engine calls it.
    pub name: &'static str,
    /// What it means, and what to do.
    pub action: &'static str,
}

/// Every name that a reason can have.
pub const NAMES: [&str; 11] = [
    "UNSPECIFIED",
    "PRIORITY_STARVED",
    "NO_MATCHING_SUPPLY",
    "TOPOLOGY_UNSATISFIABLE",
    "PREEMPTION_EXHAUSTED",
    "SPREAD_UNSATISFIABLE",
    "BOOTSTRAP_REFUSED",
    "PROVIDER_FAILING",
    "NO_SESSION",
    "PREEMPTION_UNDER_WAY",
    "QUOTA_EXHAUSTED",
];

/// The finer reason where there is one, else the base reason.
#[must_use]
pub fn of(reason: i32, detail: i32) -> Reason {
    let fine = UnmetDetail::try_from(detail).ok().and_then(of_detail);
    fine.unwrap_or_else(|| base(reason))
}

/// The base reason.
#[must_use]
pub fn base(reason: i32) -> Reason {
    let (name, action) = match UnmetReason::try_from(reason).unwrap_or_default() {
        UnmetReason::PriorityStarved => (
            "PRIORITY_STARVED",
            "matching machines exist but went to needs ahead of it, of a higher priority or earlier \
             at the same; raise its priority, lower that of others, or add capacity of this shape",
        ),
        UnmetReason::NoMatchingSupply => (
            "NO_MATCHING_SUPPLY",
            "no machine of this shape in any state; relax the requirements or raise the \
             provider's quota",
        ),
        UnmetReason::TopologyUnsatisfiable => (
            "TOPOLOGY_UNSATISFIABLE",
            "no single domain holds the whole group; shrink it or relax co-location; it never \
             resolves across shards",
        ),
        UnmetReason::PreemptionExhausted => (
            "PREEMPTION_EXHAUSTED",
            "victims were found but freed too little; add capacity of this shape",
        ),
        UnmetReason::Unspecified => ("UNSPECIFIED", "no cycle has judged it yet; look again"),
    };
    Reason { name, action }
}

fn of_detail(detail: UnmetDetail) -> Option<Reason> {
    let (name, action) = match detail {
        UnmetDetail::Unspecified => return None,
        UnmetDetail::SpreadUnsatisfiable => (
            "SPREAD_UNSATISFIABLE",
            "a hard spread term leaves no legal domain; widen the zones or the skew",
        ),
        UnmetDetail::BootstrapRefused => {
            ("BOOTSTRAP_REFUSED", "the cluster refused a bootstrap blob; see its words")
        }
        UnmetDetail::ProviderFailing => {
            ("PROVIDER_FAILING", "the provider fails this shape; see its words")
        }
        UnmetDetail::NoSession => {
            ("NO_SESSION", "its operator is not connected; nothing is bought until it is")
        }
        UnmetDetail::PreemptionUnderWay => {
            ("PREEMPTION_UNDER_WAY", "machines are draining for it; wait for their grace")
        }
        UnmetDetail::QuotaExhausted => (
            "QUOTA_EXHAUSTED",
            "this shard's slice of the provider account is used up; see `list-quotas`",
        ),
    };
    Some(Reason { name, action })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_shown_instead_of_the_base_reason() {
        let starved = UnmetReason::PriorityStarved as i32;
        assert_eq!(of(starved, 0).name, "PRIORITY_STARVED");
        assert_eq!(of(starved, UnmetDetail::NoSession as i32).name, "NO_SESSION");
        assert_eq!(of(starved, 99).name, "PRIORITY_STARVED");
    }

    #[test]
    fn every_name_is_listed() {
        let names: Vec<&str> =
            (0..=4).map(base).chain((1..=6).map(|detail| of(0, detail))).map(|r| r.name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn every_reason_has_its_name_and_says_what_to_do() {
        let names = (1..=4).map(base).chain((1..=6).map(|detail| of(0, detail)));
        for (reason, number) in names.zip(1..) {
            assert!(!reason.action.is_empty() && !reason.action.ends_with('.'), "{number}");
            // Wording rules of the chapter.
            for never in ["pod count", "another shard", "spot tier"] {
                assert!(!reason.action.contains(never), "{}", reason.action);
            }
        }
        for (number, name) in [(1, "PRIORITY_STARVED"), (4, "PREEMPTION_EXHAUSTED")] {
            assert!(UnmetReason::try_from(number).unwrap().as_str_name().ends_with(name));
        }
    }
}
