//! `kubectl` with expectations.

use std::thread;
use std::time::{Duration, Instant};

use bigfleet_testkit::kube::ControlPlane;
use serde_json::Value;

pub(crate) struct Cluster(ControlPlane);

impl Cluster {
    pub(crate) fn start_or_skip() -> Option<Self> {
        ControlPlane::start_or_skip().map(Self)
    }

    /// Runs a command that must succeed; its output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        self.ok_with(args, "")
    }

    /// The same with something to read, for `-f -`.
    pub(crate) fn ok_with(&self, args: &[&str], stdin: &str) -> String {
        let output = self.0.kubectl_with(args, stdin);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {args:?} failed: {stderr}\n{stdin}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail; what it says.
    pub(crate) fn refused(&self, args: &[&str], stdin: &str) -> String {
        let output = self.0.kubectl_with(args, stdin);
        assert!(!output.status.success(), "kubectl {args:?} succeeded\n{stdin}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs a command until it succeeds.
    pub(crate) fn eventually(&self, args: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.0.kubectl_with(args, "").status.success() {
            assert!(Instant::now() < deadline, "kubectl {args:?} still fails after 30 s");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Creates an object, fields unknown to the schema included, and reads it back.
    pub(crate) fn create(&self, object: &Value) -> Value {
        let args = ["create", "--validate=ignore", "-o=json", "-f", "-"];
        serde_json::from_str(&self.ok_with(&args, &object.to_string())).unwrap()
    }

    /// Merges `patch` into the status of an object, which must succeed.
    pub(crate) fn patch_status(&self, object: &str, patch: &Value) -> Value {
        let patch = patch.to_string();
        serde_json::from_str(&self.ok(&status_patch(object, &patch))).unwrap()
    }

    /// Merges `patch` into the status of an object, which must be refused.
    pub(crate) fn patch_status_refused(&self, object: &str, patch: &Value) -> String {
        let patch = patch.to_string();
        self.refused(&status_patch(object, &patch), "")
    }
}

fn status_patch<'a>(object: &'a str, patch: &'a str) -> [&'a str; 8] {
    let namespace = "--namespace=samples";
    ["patch", object, namespace, "--subresource=status", "--type=merge", "-o=json", "-p", patch]
}
