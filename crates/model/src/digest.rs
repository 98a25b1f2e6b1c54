//! Digests by which two parties find out that they disagree (coordinator
//! chapter §6): cheap to send with every report, asked about only when they differ.

use sha2::{Digest, Sha256};

/// Digest of a set of entries: the first 8 bytes, little-endian, of SHA-256 over
/// the entries in order, each behind its length (8 bytes, little-endian). Never 0,
/// which on the wire means that there is none. The order of `entries` and
/// repetitions do not matter.
#[must_use]
pub fn of_set<'a>(entries: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut entries: Vec<&str> = entries.into_iter().collect();
    entries.sort_unstable();
    entries.dedup();
    let mut hash = Sha256::new();
    for entry in entries {
        hash.update((entry.len() as u64).to_le_bytes());
        hash.update(entry);
    }
    let first =
        hash.finalize().iter().take(8).rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    first.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_and_no_others_have_equal_digests() {
        assert_eq!(of_set(["b", "a", "b"]), of_set(["a", "b"]));
        for other in [&["ab"][..], &["a"], &["a", "b", ""], &[]] {
            assert_ne!(of_set(other.iter().copied()), of_set(["a", "b"]), "{other:?}");
        }
    }

    /// Two versions must agree on it, so it is frozen: SHA-256 of nothing begins
    /// e3 b0 c4 42 98 fc 1c 14.
    #[test]
    fn the_first_bytes_are_little_endian() {
        assert_eq!(of_set([]), 0x141c_fc98_42c4_b0e3);
    }
}
