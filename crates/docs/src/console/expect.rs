//! Whether a command printed what the page shows.

const ANY: &str = "…";

/// Compares line by line.
pub(super) fn matches(expected: &[String], printed: &str) -> bool {
    let expected: Vec<String> = expected.iter().map(|line| plain(line)).collect();
    let printed: Vec<String> = printed.lines().map(plain).collect();
    lines(trimmed(&expected), trimmed(&printed))
}

/// Widths of blanks depend on what stands beside them.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without empty lines before and after.
fn trimmed(mut lines: &[String]) -> &[String] {
    while let [first, rest @ ..] = lines
        && first.is_empty()
    {
        lines = rest;
    }
    while let [rest @ .., last] = lines
        && last.is_empty()
    {
        lines = rest;
    }
    lines
}

fn lines(expected: &[String], printed: &[String]) -> bool {
    match expected {
        [] => printed.is_empty(),
        [any, rest @ ..] if any == ANY => {
            (0..=printed.len()).any(|skipped| lines(rest, &printed[skipped..]))
        }
        [first, rest @ ..] => printed
            .split_first()
            .is_some_and(|(line, others)| one(first, line) && lines(rest, others)),
    }
}

/// One line: the parts between `…` stand in it in order, the first at its beginning and the last
/// at its end.
fn one(expected: &str, printed: &str) -> bool {
    let mut parts = expected.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &[&str], printed: &str) -> bool {
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        matches(&expected, printed)
    }

    #[test]
    fn what_is_shown_must_be_printed() {
        assert!(check(&["a  b", ""], "a b\n"));
        assert!(!check(&["a"], "a\nb\n"));
        assert!(!check(&["a", "b"], "a\n"));
        assert!(!check(&["a"], ""));
    }

    #[test]
    fn dots_stand_for_lines_and_for_text() {
        assert!(check(&["a", "…", "d"], "a\nb\nc\nd\n"));
        assert!(check(&["…"], "") && check(&["…", "a"], "a"));
        assert!(check(&["x … y…"], "x 1 2 y 3"));
        assert!(!check(&["x … y"], "x 1 2 y 3"));
        assert!(!check(&["…", "b", "…"], "a\nc\n"));
    }
}
