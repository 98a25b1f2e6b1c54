//! Object names that follow from identities.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Longest name that Kubernetes takes.
const NAME_MAX: usize = 253;

/// How much of an unfit name is kept before its hash.
const KEPT_MAX: usize = 200;

/// Name of the [`UpcomingNode`](crate::UpcomingNode) of a machine: `un-<machine id>`.
///
/// An id that makes no DNS-1123 subdomain is lower-cased, its invalid
/// characters become `-`, it is cut to 200 characters, and eight hex digits
/// of its SHA-256 keep ids apart that then look alike.
pub fn upcoming_node_name(machine_id: &str) -> String {
    let name = format!("un-{machine_id}");
    if is_dns1123_subdomain(&name) {
        return name;
    }
    let kept: Vec<char> = name
        .chars()
        .take(KEPT_MAX)
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if is_label_char(c) || c == '.' { c } else { '-' })
        .collect();
    // A dot is valid only between two letters or digits; a cut may also leave one at the end.
    let alphanumeric =
        |at: Option<usize>| at.and_then(|at| kept.get(at)).is_some_and(char::is_ascii_alphanumeric);
    let mut fit: String = kept
        .iter()
        .enumerate()
        .map(|(at, &c)| match c {
            '.' if !(alphanumeric(at.checked_sub(1)) && alphanumeric(at.checked_add(1))) => '-',
            c => c,
        })
        .collect();
    fit.push('-');
    push_hex(&mut fit, &Sha256::digest(machine_id)[..4]);
    fit
}

/// Name of the [`AvailableCapacity`](crate::AvailableCapacity) of a `supersedes_key`, which
/// includes its `available:` prefix.
pub fn available_capacity_name(supersedes_key: &str) -> String {
    let mut name = "ac-".to_owned();
    push_hex(&mut name, &Sha256::digest(supersedes_key)[..16]);
    name
}

fn is_label_char(c: char) -> bool {
    c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_dns1123_subdomain(name: &str) -> bool {
    name.len() <= NAME_MAX
        && name.split('.').all(|label| {
            !label.is_empty()
                && label.chars().all(is_label_char)
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_id_is_kept() {
        for id in ["i-0abc", "a", "7", "a.b-c.d", &"x".repeat(250)] {
            assert_eq!(upcoming_node_name(id), format!("un-{id}"));
        }
    }

    #[test]
    fn an_unfit_id_is_made_fit_and_hashed() {
        for (id, name) in [
            ("", "un--e3b0c442"),
            ("Rack_1/Slot 2", "un-rack-1-slot-2-cae9f11f"),
            ("aws:///eu-west-1a/i-0abc", "un-aws----eu-west-1a-i-0abc-"),
            ("größe", "un-gr--e-"),
            ("a..b", "un-a--b-"),
            ("a.-b", "un-a--b-"),
            ("a-.b", "un-a--b-"),
            ("a.", "un-a--"),
            (".a", "un--a-"),
            ("a-", "un-a--"),
        ] {
            let made = upcoming_node_name(id);
            assert!(made.starts_with(name), "{id:?} gave {made}");
            assert!(is_dns1123_subdomain(&made), "{id:?} gave {made}");
        }
    }

    #[test]
    fn a_long_id_is_cut_wherever_the_cut_falls() {
        for tail in [".", "-", "x", ".-", "..", "-."] {
            for before in 190..=200 {
                let id = format!("{}{}", "a".repeat(before), tail.repeat(40));
                let made = upcoming_node_name(&id);
                assert!(is_dns1123_subdomain(&made), "{id:?} gave {made}");
                if made != format!("un-{id}") {
                    assert_eq!(made.len(), KEPT_MAX + 1 + 8);
                }
            }
        }
        assert_eq!(upcoming_node_name(&"a".repeat(250)).len(), NAME_MAX);
        assert_eq!(upcoming_node_name(&"a".repeat(251)).len(), KEPT_MAX + 9);
    }

    #[test]
    fn ids_that_look_alike_keep_different_names() {
        assert_ne!(upcoming_node_name("A"), upcoming_node_name("a"));
        assert_ne!(upcoming_node_name("a_b"), upcoming_node_name("a/b"));
    }

    #[test]
    fn available_capacity_names_are_those_of_the_specification() {
        let v1 = "available:p=0|ipb=0|rpb=0|reqs=|spr=";
        let v2 = "available:p=1000000|ipb=16|rpb=19|reqs=node.kubernetes.io/instance-type:1:\
                  a3-highgpu-8g,a3-ultragpu-8g;topology.kubernetes.io/zone:5:;\
                  |spr=topology.kubernetes.io/zone:1:1;";
        assert_eq!(available_capacity_name(v1), "ac-a14c8748549f29333b8b251abb8ff432");
        assert_eq!(available_capacity_name(v2), "ac-6af25ad938b3a78f2b3c424a948399b0");
    }
}
