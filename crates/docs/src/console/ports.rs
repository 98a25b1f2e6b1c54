//! Ports of a page.

use std::collections::BTreeMap;

use bigfleet_testkit::ports::port;
use regex::{Captures, Regex};

/// Which of our commands listens or dials where if it is not told: the beginning of the command,
/// a variable that sets the flag, the address with its usual port.
const DEFAULTS: [(&str, &str, &str); 19] = [
    ("bigfleet all-in-one", "BIGFLEET_SHARD_LISTEN", ":7780"),
    ("bigfleet all-in-one", "BIGFLEET_COORDINATOR_LISTEN", ":7790"),
    ("bigfleet all-in-one", "BIGFLEET_RAFT_BIND", ":7791"),
    ("bigfleet all-in-one", "BIGFLEET_SHARD_METRICS_ADDR", ":8780"),
    ("bigfleet all-in-one", "BIGFLEET_COORDINATOR_METRICS_ADDR", ":8790"),
    ("bigfleet shard", "BIGFLEET_LISTEN", ":7780"),
    ("bigfleet shard", "BIGFLEET_METRICS_ADDR", ":8780"),
    ("bigfleet coordinator", "BIGFLEET_LISTEN", ":7790"),
    ("bigfleet coordinator", "BIGFLEET_RAFT_BIND", ":7791"),
    ("bigfleet coordinator", "BIGFLEET_METRICS_ADDR", ":8790"),
    ("bigfleet demo", "BIGFLEET_LISTEN", "127.0.0.1:8090"),
    ("bigfleetctl", "BIGFLEET_COORDINATOR", "127.0.0.1:7790"),
    ("bigfleet-operator", "BIGFLEET_METRICS_ADDR", ":8770"),
    ("bigfleet-unschedulable-pod-controller", "BIGFLEET_METRICS_ADDR", ":8080"),
    ("bigfleet-provider-sim", "BIGFLEET_ADDR", ":9000"),
    ("bigfleet-provider-sim", "BIGFLEET_METRICS_ADDR", ":9090"),
    ("bigfleet-provider-sim", "BIGFLEET_ADMIN_ADDR", "127.0.0.1:9091"),
    ("bigfleet-provider-local", "BIGFLEET_ADDR", ":9000"),
    ("bigfleet-provider-local", "BIGFLEET_METRICS_ADDR", ":9090"),
];

/// Numbers in the page, and those that stand for them here.
#[derive(Debug)]
pub(super) struct Ports {
    here: BTreeMap<String, String>,
    pattern: Option<Regex>,
}

impl Ports {
    pub(super) fn new() -> Self {
        // Those of addresses; 7000 to 9999 are ours.
        Self { here: BTreeMap::new(), pattern: Regex::new(r":([789]\d{3})\b").ok() }
    }

    /// A text of the page with the numbers that count here.
    pub(super) fn here(&mut self, text: &str) -> String {
        let Some(pattern) = self.pattern.clone() else { return text.to_owned() };
        let replaced = pattern.replace_all(text, |found: &Captures<'_>| {
            let free = || port().rsplit(':').next().unwrap_or_default().to_owned();
            format!(":{}", self.here.entry(found[1].to_owned()).or_insert_with(free))
        });
        replaced.into_owned()
    }

    /// What was printed, with the numbers of the page.
    pub(super) fn in_page(&self, printed: &str) -> String {
        let mut text = printed.to_owned();
        for (page, here) in &self.here {
            text = text.replace(&format!(":{here}"), &format!(":{page}"));
        }
        text
    }

    /// What a command must be told besides.
    pub(super) fn variables(&mut self, command: &str) -> Vec<(&'static str, String)> {
        let of = DEFAULTS.iter().filter(|(start, ..)| {
            let rest = command.strip_prefix(start);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        });
        of.map(|(_, variable, address)| (*variable, self.here(address))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_ports_of_its_own_and_does_not_see_them() {
        let mut ports = Ports::new();
        let here = ports.here("--listen=:7780 127.0.0.1:7780 12:3456");
        assert!(!here.contains("7780") && here.ends_with("12:3456"), "{here}");
        assert_eq!(ports.in_page(&here), "--listen=:7780 127.0.0.1:7780 12:3456");
        let variables = ports.variables("bigfleet shard --id x");
        assert_eq!(variables[0].0, "BIGFLEET_LISTEN");
        assert_eq!(ports.in_page(&variables[0].1), ":7780");
        assert!(ports.variables("bigfleet decide").is_empty());
    }
}
