//! Metrics that pages name exist.

use std::collections::BTreeSet;

use bigfleet_charts::source::Source;
use bigfleet_docs::page::{self, Page};
use regex::Regex;

/// The specification names what is still to be built, records name what once was, and reference
/// providers have metrics of their own.
const OTHERS: [&str; 3] = ["docs/spec", "docs/decisions", "providers"];

#[test]
fn every_metric_that_a_page_names_is_in_the_one_list() {
    let source = Source::load().unwrap();
    let known: BTreeSet<String> = source
        .components
        .iter()
        .flat_map(|component| component.metrics.iter().map(move |metric| (component, metric)))
        .map(|(component, metric)| format!("{}{}", component.prefix, metric.name))
        .collect();
    // With what tells the name of a crate, or the beginning of several names.
    let pattern = Regex::new(r"bigfleet_[a-z_]*[a-z](?:::|=|_)?").unwrap();
    let (mut wrong, mut right) = (Vec::new(), 0);
    for path in page::all().unwrap() {
        if OTHERS.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        let page = Page::read(&path).unwrap();
        let blocks =
            page.blocks.iter().filter(|block| !["rust", "toml"].contains(&block.language()));
        let texts =
            page.spans.iter().map(|(_, words)| words).chain(blocks.map(|block| &block.text));
        for name in texts.flat_map(|text| pattern.find_iter(text)).map(|found| found.as_str()) {
            let parts =
                ["_bucket", "_sum", "_count"].iter().filter_map(|end| name.strip_suffix(end));
            let begins = |begin: &str| known.iter().any(|one| one.starts_with(begin));
            let found = name.ends_with("::")
                || name.ends_with('=')
                || name.ends_with('_') && begins(name)
                || std::iter::once(name).chain(parts).any(|name| known.contains(name));
            if found {
                right += 1;
            } else {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "no process exports\n{}", wrong.join("\n"));
    assert!(right > 15, "only {right} names were found");
}
