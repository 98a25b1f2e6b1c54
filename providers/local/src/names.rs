//! What a machine is called in its cluster.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// A Node's name is also the value of its hostname label.
const NAME_MAX: usize = 63;
/// Derived names begin so, and no id is taken over that does.
const DERIVED: &str = "bf-";
/// Hex digits of the hash.
const HASH: usize = 16;
/// Longest value of a label.
const LABEL_MAX: usize = 63;

/// `spec.providerID`, and the host's reference.
#[must_use]
pub fn provider_id(machine: &str) -> String {
    format!("bigfleet-local://{machine}")
}

/// The Node's name: the id, where that is a short DNS-1123 name. Any other id is made
/// readable and told apart by its hash, so that two ids never share a Node.
#[must_use]
pub fn node_name(machine: &str) -> String {
    if is_name(machine) && !machine.starts_with(DERIVED) {
        return machine.to_owned();
    }
    let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let kept = NAME_MAX - DERIVED.len() - HASH - 1;
    let mut name = DERIVED.to_owned();
    name.extend(machine.chars().take(kept).map(fit));
    name.push('-');
    for byte in &Sha256::digest(machine)[..HASH / 2] {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit();
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= NAME_MAX && text.split('.').all(label)
}

/// Whether Kubernetes takes the text as the value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= LABEL_MAX
        && text.chars().all(inner)
        && edge(text.chars().next())
        && edge(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_fit_id_is_the_name() {
        for id in ["local-000001", "a", "rack-1.slot-2"] {
            assert_eq!(node_name(id), id);
        }
    }

    #[test]
    fn every_name_is_valid_and_of_one_id_only() {
        let long = "x".repeat(300);
        let other = format!("{long}y");
        let derived = node_name("A");
        let ids = [
            "a",
            "A",
            "a-",
            "a_",
            "a.",
            "-a",
            "ä",
            "a b",
            "a/b",
            "a//b",
            "a..b",
            "",
            ".",
            "bf-a",
            "BF-a",
            "local/spot/x/zone-a/001",
            &long,
            &other,
            &derived,
        ];
        let mut names = BTreeMap::new();
        for id in ids {
            let name = node_name(id);
            assert!(is_name(&name), "{id:?} gives {name:?}");
            assert_eq!(names.insert(name, id), None, "{id:?}");
        }
    }

    #[test]
    fn label_values_are_short_and_begin_and_end_well() {
        let fits = "a".repeat(63);
        for value in ["", "a", "A_b.c-9", &fits] {
            assert!(is_label_value(value), "{value:?}");
        }
        let long = "a".repeat(64);
        for value in ["-a", "a-", "a/b", "ä", "a b", &long] {
            assert!(!is_label_value(value), "{value:?}");
        }
    }
}
