//! Committed references are those that the sources make.

use bigfleet_docs::{GENERATE, reference, root};
use bigfleet_testkit::binaries::binary;

#[test]
fn references_are_current() {
    for file in reference::files(binary).unwrap() {
        let committed = std::fs::read_to_string(root().join(file.path)).unwrap_or_default();
        assert!(committed == file.text, "{} is stale; run: {GENERATE}", file.path);
    }
}
