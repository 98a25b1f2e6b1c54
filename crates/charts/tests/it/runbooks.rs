//! One page for each alert, with commands that exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use bigfleet_charts::{root, rules::runbook, source::Source};

/// Pages that are not of an alert.
const OTHERS: [&str; 2] = ["README", "restore-the-coordinator"];

fn pages() -> BTreeMap<String, String> {
    fs::read_dir(root().join("docs/runbooks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn every_alert_has_its_page_and_every_page_its_alert() {
    let source = Source::load().unwrap();
    let alerts: BTreeSet<String> = source
        .alerts
        .iter()
        .flat_map(|group| &group.rules)
        .map(|alert| runbook(&alert.alert))
        .collect();
    let pages: BTreeSet<String> =
        pages().into_keys().filter(|name| !OTHERS.contains(&name.as_str())).collect();
    assert_eq!(pages, alerts);
}

#[test]
fn pages_say_all_four_things_and_link_to_pages_that_exist() {
    let pages = pages();
    for (name, text) in &pages {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let (target, _) = link;
            if !target.contains("://") {
                let path = root().join("docs/runbooks").join(target);
                assert!(path.exists(), "{name} links to {target}");
            }
        }
        if OTHERS.contains(&name.as_str()) {
            continue;
        }
        let mut rest = text.as_str();
        for heading in ["## Meaning", "## First three commands", "## Decide", "## Not at risk"] {
            let (_, after) =
                rest.split_once(heading).unwrap_or_else(|| panic!("{name}: {heading}"));
            rest = after;
        }
        assert!(rest.contains("Running workloads."), "{name}");
        assert_eq!(commands(text).len(), 3, "{name}: {:?}", commands(text));
        assert!(pages["README"].contains(&format!("({name}.md)")), "README lacks {name}");
    }
}

#[test]
fn commands_of_bigfleetctl_are_those_of_its_reference() {
    let reference = fs::read_to_string(root().join("docs/reference/bigfleetctl.md")).unwrap();
    let mut sections: BTreeMap<&str, &str> = BTreeMap::new();
    for section in reference.split("\n## ").skip(1) {
        let (title, body) = section.split_once('\n').unwrap();
        sections.insert(title.trim_matches('`'), body);
    }
    let global = sections["Flags of every command"];
    let mut pages = pages();
    let guide = fs::read_to_string(root().join("docs/operator-guide.md")).unwrap();
    pages.insert("operator-guide".to_owned(), guide);
    for (name, text) in pages {
        for command in text.lines().flat_map(spans).filter(|one| one.starts_with("bigfleetctl ")) {
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let two = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            let body = sections.get(two.as_str()).or_else(|| sections.get(words[0]));
            let body = body.unwrap_or_else(|| panic!("{name}: no command {command}"));
            for flag in words.iter().filter(|word| word.starts_with('-')) {
                let flag = flag.split('=').next().unwrap();
                let known = |table: &str| {
                    table.lines().any(|line| line.split(['`', ' ', ',']).any(|word| word == flag))
                };
                assert!(known(body) || known(global), "{name}: {command} has no flag {flag}");
            }
        }
    }
}

/// Lines of the block under "First three commands".
fn commands(text: &str) -> Vec<&str> {
    let block = text.split("```").nth(1).unwrap_or_default();
    block.lines().filter(|line| !line.is_empty()).collect()
}

/// A line that is a command, or the code in it.
fn spans(line: &str) -> Vec<&str> {
    if line.trim_start().starts_with("bigfleetctl ") {
        return vec![line.trim()];
    }
    line.split('`').skip(1).step_by(2).collect()
}
