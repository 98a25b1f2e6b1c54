//! Reading a page of metrics, as far as the dashboard asks about them.

use super::super::names;

/// One value of a page.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// With the suffix of a histogram.
    pub(super) name: &'a str,
    /// As on the page.
    pub(super) labels: Vec<(&'a str, String)>,
    pub(super) value: f64,
}

/// Every line of use; what cannot be read is left out.
pub(super) fn parse(page: &str) -> impl Iterator<Item = Line<'_>> {
    page.lines().filter_map(line)
}

fn line(text: &str) -> Option<Line<'_>> {
    let end = text.find(['{', ' '])?;
    let (name, rest) = text.split_at(end);
    if !names::asked_about(name) {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    // A timestamp or an exemplar may follow.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Line { name, labels, value })
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut escaped = false;
        let mut closed = None;
        for (at, c) in after.char_indices() {
            match (escaped, c) {
                (true, 'n') => value.push('\n'),
                (true, c) => value.push(c),
                (false, '\\') => {
                    escaped = true;
                    continue;
                }
                (false, '"') => {
                    closed = Some(at + 1);
                    break;
                }
                (false, c) => value.push(c),
            }
            escaped = false;
        }
        labels.push((name, value));
        rest = after.get(closed?..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let page = "# TYPE bigfleet_shard_shortfalls gauge\n\
            bigfleet_shard_shortfalls 3\n\
            bigfleet_shard_needs_unmet{reason=\"a\\\"b\\\\c\\nd\",} 2.5 1700\n\
            bigfleet_shard_cycle_duration_seconds_bucket{le=\"+Inf\"} 7 # {id=\"x\"} 1\n\
            bigfleet_shard_outbox_depth 9\n\
            bigfleet_shard_shortfalls{broken\n\
            bigfleet_shard_shortfalls none\n# EOF\n";
        let lines: Vec<Line<'_>> = parse(page).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!((lines[0].name, lines[0].value), ("bigfleet_shard_shortfalls", 3.0));
        assert_eq!(lines[1].labels, [("reason", "a\"b\\c\nd".to_owned())]);
        assert_eq!((lines[1].value, lines[2].value), (2.5, 7.0));
        assert_eq!(lines[2].labels, [("le", "+Inf".to_owned())]);
    }
}
