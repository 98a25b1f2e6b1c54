//! The name of a pod's CapacityRequest (§8.2): it follows from the pod alone, so that a stale
//! cache runs into AlreadyExists instead of making a twin.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// What the names of all our requests begin with.
pub const PREFIX: &str = "cr-pod-";

/// How much of the pod's name is kept.
const KEPT_MAX: usize = 200;

/// Bytes of the hash of the UID that are written, in hex.
const HASH_BYTES: usize = 5;

/// `cr-pod-<pod name, cut to 200>-<first 10 hex of SHA-256(UID)>`.
#[must_use]
pub fn request_name(pod_name: &str, pod_uid: &str) -> String {
    let cut = pod_name.char_indices().nth(KEPT_MAX).map_or(pod_name.len(), |(at, _)| at);
    // A cut may leave a dot at the end, and no name has a dot before a dash.
    let kept = pod_name[..cut].trim_end_matches('.');
    let mut name = String::with_capacity(PREFIX.len() + kept.len() + 1 + 2 * HASH_BYTES);
    name.push_str(PREFIX);
    name.push_str(kept);
    name.push('-');
    for byte in &Sha256::digest(pod_uid)[..HASH_BYTES] {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_pod_and_uid() {
        // echo -n abc | sha256sum: ba7816bf8f01cfea…
        assert_eq!(request_name("web-0", "abc"), "cr-pod-web-0-ba7816bf8f");
        assert_ne!(request_name("web-0", "abc"), request_name("web-0", "abd"));
    }

    #[test]
    fn a_long_name_is_cut_and_stays_legal() {
        let long = "a".repeat(253);
        let name = request_name(&long, "abc");
        assert_eq!(name, format!("cr-pod-{}-ba7816bf8f", "a".repeat(200)));
        let dotted = format!("{}.{}", "a".repeat(199), "b".repeat(20));
        assert_eq!(request_name(&dotted, "abc"), format!("cr-pod-{}-ba7816bf8f", "a".repeat(199)));
        // A name of 200 is not cut.
        let whole = format!("{}.b", "a".repeat(198));
        assert_eq!(request_name(&whole, "abc"), format!("cr-pod-{whole}-ba7816bf8f"));
    }
}
