//! Something that costs, or will.

use serde::Serialize;

/// A red flag.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Flag {
    pub(super) id: &'static str,
    pub(super) severity: &'static str,
    pub(super) title: &'static str,
    pub(super) detail: String,
    pub(super) value: f64,
    pub(super) r#where: Vec<String>,
    pub(super) estimate: bool,
}

/// A flag that nobody could look for: never silently fine.
#[derive(Debug, Serialize)]
pub(super) struct Unchecked {
    pub(super) id: &'static str,
    pub(super) why: String,
}

pub(super) const PINNED_ON_SPOT: &str = "pinned-on-spot";
pub(super) const RISING: &str = "create-and-delete-rising";
pub(super) const PAST_HOLD: &str = "idle-past-hold";
pub(super) const BESIDE_RESERVED: &str = "on-demand-beside-idle-reserved";
pub(super) const CHEAPER: &str = "cheaper-alternative";

/// Work that must not be interrupted, where it will be.
pub(super) fn pinned_on_spot(machines: f64, pods: Vec<String>) -> Flag {
    Flag {
        id: PINNED_ON_SPOT,
        severity: "danger",
        title: "Pinned work on Spot",
        detail: format!("{machines} spot machines serve work whose interruption penalty is pinned"),
        value: machines,
        r#where: pods,
        estimate: false,
    }
}

/// Machines are bought and given back, both more and more.
pub(super) fn rising(pods: Vec<String>, created: f64, deleted: f64) -> Flag {
    Flag {
        id: RISING,
        severity: "warning",
        title: "Create and Delete rise together",
        detail: format!(
            "in the last 15 minutes {:.1} machines a minute were bought and {:.1} given back, both \
             more than in the 15 minutes before: demand may flap",
            created * 60.0,
            deleted * 60.0
        ),
        value: created * 60.0,
        r#where: pods,
        estimate: false,
    }
}

/// Kinds of one shard over two windows: before, now.
pub(super) fn is_rising(created: [Option<f64>; 2], deleted: [Option<f64>; 2]) -> bool {
    // A fifth more than before: less is noise.
    let rises = |[before, now]: [Option<f64>; 2]| {
        before.zip(now).is_some_and(|(before, now)| now > 0.0 && now > 1.2 * before)
    };
    rises(created) && rises(deleted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_must_rise() {
        let (up, flat, none) = ([Some(0.1), Some(0.3)], [Some(0.1), Some(0.1)], [None, None]);
        assert!(is_rising(up, up) && is_rising([Some(0.0), Some(0.1)], up));
        // What was before is not known to have been less.
        for other in [flat, none, [None, Some(0.1)], [Some(0.2), Some(0.1)], [Some(0.0), Some(0.0)]]
        {
            assert!(!is_rising(up, other) && !is_rising(other, up), "{other:?}");
        }
    }
}
