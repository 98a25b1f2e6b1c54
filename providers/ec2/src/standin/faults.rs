//! How the stand-in behaves, and misbehaves. `POST /admin/faults` changes what it names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All of it; times in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// A new instance is in no description for so long, and the end of one neither.
    pub visible_after_ms: u64,
    /// From launch to running.
    pub running_after_ms: u64,
    /// From shutting-down to terminated.
    pub terminated_after_ms: u64,
    /// What a command takes.
    pub command_ms: u64,
    /// From bootstrap to Ready.
    pub join_ms: u64,
    /// What an orderly drain takes, if its grace is that long.
    pub drain_ms: u64,
    /// Most rows a page, 1 to 1000.
    pub page_size: usize,
    /// Calls a second; more are throttled. 0 takes all.
    pub calls_per_second: u32,
    /// The next so many calls are throttled.
    pub throttle_next: u32,
    /// The next so many launches happen, but their answer is lost.
    pub lose_launch_answers: u32,
    /// Live instances of a `type/zone` at most; others are endless.
    pub stock: BTreeMap<String, usize>,
    /// Live instances of the account at most.
    pub limit: Option<usize>,
    /// Hosts do not take commands.
    pub deaf: bool,
    /// Drain commands fail.
    pub drain_fails: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            visible_after_ms: 0,
            running_after_ms: 30,
            terminated_after_ms: 30,
            command_ms: 5,
            join_ms: 20,
            drain_ms: 20,
            page_size: 1000,
            calls_per_second: 0,
            throttle_next: 0,
            lose_launch_answers: 0,
            stock: BTreeMap::new(),
            limit: None,
            deaf: false,
            drain_fails: false,
        }
    }
}

impl Faults {
    /// With the fields of a JSON object changed; a field that is none is refused.
    pub fn patched(&self, patch: &serde_json::Value) -> Result<Self, serde_json::Error> {
        let mut all = serde_json::to_value(self)?;
        if let (Some(all), Some(patch)) = (all.as_object_mut(), patch.as_object()) {
            all.extend(patch.clone());
        }
        let patched: Self = serde_json::from_value(all)?;
        Ok(Self { page_size: patched.page_size.clamp(1, 1000), ..patched })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_changes_what_it_names() {
        let faults = Faults::default().patched(&json!({"visible_after_ms": 7})).unwrap();
        assert_eq!((faults.visible_after_ms, faults.running_after_ms), (7, 30));
        assert!(faults.patched(&json!({"visble": 7})).is_err());
    }
}
