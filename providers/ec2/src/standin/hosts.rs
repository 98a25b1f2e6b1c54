//! One instance and the host in it. What it is follows from when things happened, so that
//! nothing runs in the background and a restart changes nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Host {
    pub(super) id: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) spot: bool,
    pub(super) token: String,
    /// The launch's parameters: the same token with others is refused.
    pub(super) parameters: String,
    pub(super) tags: BTreeMap<String, String>,
    /// Milliseconds of the unix epoch, as all times here.
    pub(super) launched: u64,
    pub(super) visible: u64,
    pub(super) running: u64,
    pub(super) stopped: bool,
    /// When it ends, or ended.
    pub(super) ends: Option<u64>,
    /// When that is seen.
    pub(super) end_visible: u64,
    pub(super) terminated_after: u64,
    pub(super) reason: String,
    pub(super) joined: Option<Joined>,
    pub(super) reboots: u32,
}

/// The cluster that a host is in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Joined {
    pub(super) operation: String,
    pub(super) cluster: String,
    pub(super) ready: u64,
    /// Never the blob itself: it is a secret.
    pub(super) blob_sha256: String,
    pub(super) blob_bytes: usize,
}

impl Host {
    /// Whether it really lives: paid for and not ending.
    pub(super) fn is_live(&self, now: u64) -> bool {
        self.ends.is_none_or(|ends| now < ends)
    }

    /// What its state really is.
    pub(super) fn state(&self, now: u64) -> &'static str {
        match self.ends {
            Some(ends) if now >= ends + self.terminated_after => "terminated",
            Some(ends) if now >= ends => "shutting-down",
            _ => self.before_end(now),
        }
    }

    /// What descriptions say: they hear of the end a little later.
    pub(super) fn described(&self, now: u64) -> &'static str {
        if now < self.end_visible { self.before_end(now) } else { self.state(now) }
    }

    fn before_end(&self, now: u64) -> &'static str {
        match (self.stopped, now < self.running) {
            (true, _) => "stopped",
            (false, true) => "pending",
            (false, false) => "running",
        }
    }

    /// Whether its agent takes commands.
    pub(super) fn listens(&self, now: u64) -> bool {
        self.state(now) == "running" && now >= self.visible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_by_the_clock() {
        let host = Host {
            id: "i-1".into(),
            instance_type: String::new(),
            zone: String::new(),
            spot: false,
            token: String::new(),
            parameters: String::new(),
            tags: BTreeMap::new(),
            launched: 0,
            visible: 0,
            running: 10,
            stopped: false,
            ends: Some(20),
            end_visible: 25,
            terminated_after: 10,
            reason: String::new(),
            joined: None,
            reboots: 0,
        };
        let states: Vec<_> = [5, 15, 20, 30].map(|now| host.state(now)).into();
        assert_eq!(states, ["pending", "running", "shutting-down", "terminated"]);
        assert_eq!(host.described(22), "running", "not heard of so far");
        assert!(host.is_live(19) && !host.is_live(20));
    }
}
