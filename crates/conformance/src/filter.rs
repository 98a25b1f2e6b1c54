//! `--filter`: which tests to run.

/// Patterns of ids: `SM`, `FE-03`, `FE-0*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter(Vec<String>);

impl Filter {
    /// Comma-separated patterns; none takes every test.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let patterns = text.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        Self(patterns.map(str::to_uppercase).collect())
    }

    /// Of exactly these ids.
    #[must_use]
    pub fn of(ids: &[&str]) -> Self {
        Self(ids.iter().map(|&id| id.to_owned()).collect())
    }

    /// Whether this test is to run. An area's prefix takes the whole area.
    #[must_use]
    pub fn takes(&self, id: &str) -> bool {
        let area = id.split('-').next().unwrap_or(id);
        self.0.is_empty() || self.0.iter().any(|pattern| pattern == area || fits(pattern, id))
    }
}

/// `*` stands for any letters.
fn fits(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((head, rest)) => id.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len())
                .any(|skipped| tail.is_char_boundary(skipped) && fits(rest, &tail[skipped..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (filter, id, taken) in [
            ("", "SM-01", true),
            ("SM", "SM-01", true),
            ("sm-01", "SM-01", true),
            ("SM-0", "SM-01", false),
            ("SM-0*", "SM-01", true),
            ("SM-0*", "SM-10", false),
            ("*-01", "FE-01", true),
            ("*1*", "FE-10", true),
            ("FE-03, CO", "CO-09", true),
            ("FE-03, CO", "FE-04", false),
            ("S", "SM-01", false),
        ] {
            assert_eq!(Filter::parse(filter).takes(id), taken, "{filter} {id}");
        }
    }
}
