//! Rules, dashboards and documents name what there is.

use std::collections::BTreeSet;

use bigfleet_charts::{
    check::Known,
    root,
    source::{Item, Source},
};

#[test]
fn every_query_names_series_and_labels_that_exist() {
    let source = Source::load().unwrap();
    let known = Known::of(&source);
    let mut faults = Vec::new();
    let mut check = |place: String, expr: &str| {
        let expr = source.sampled(expr).unwrap();
        faults.extend(known.faults(&expr).into_iter().map(|fault| format!("{place}: {fault}")));
    };
    for record in &source.records {
        check(record.record.clone(), &record.expr);
    }
    for group in &source.alerts {
        for alert in &group.rules {
            check(alert.alert.clone(), &alert.expr);
        }
    }
    for dashboard in &source.dashboards {
        if let Some(pick) = &dashboard.pick {
            check(dashboard.title.clone(), &pick.from);
        }
        for item in &dashboard.panels {
            let Item::Panel(panel) = item else { continue };
            for query in &panel.queries {
                check(format!("{}, {}", dashboard.title, panel.title), &query.expr);
            }
        }
    }
    assert_eq!(faults, [""; 0]);
}

#[test]
fn a_wrong_name_is_found() {
    let known = Known::of(&Source::load().unwrap());
    assert_eq!(known.faults("bigfleet_shard_fenced"), [""; 0]);
    assert_eq!(known.faults("bigfleet_shard_fence"), ["no process exports bigfleet_shard_fence"]);
    assert_eq!(
        known.faults(r#"bigfleet_shard_fenced{shard="a"}"#),
        ["bigfleet_shard_fenced has no label shard"]
    );
    assert_eq!(
        known.faults("sum by (kind) (bigfleet_shard_fenced)"),
        ["no series below `by` has the label kind"]
    );
    assert_eq!(known.faults("sum(bigfleet_shard_fenced").len(), 1);
}

/// In documents a name may be cut (`bigfleet_tls_*`) or be of another kind of thing.
#[test]
fn documents_name_metrics_that_exist() {
    let source = Source::load().unwrap();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for component in &source.components {
        known.extend(
            component.metrics.iter().map(|one| format!("{}{}", component.prefix, one.name)),
        );
    }
    let prefixes: Vec<&str> = source
        .components
        .iter()
        .map(|component| component.prefix.as_str())
        .filter(|prefix| *prefix != "bigfleet_")
        .chain(["bigfleet_tls_"])
        .collect();
    // Crates are called so, too.
    let crates: Vec<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().replace('-', "_"))
        .map(|name| format!("bigfleet_{name}"))
        .collect();
    let mut unknown = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            let metric = prefixes.iter().any(|prefix| word.starts_with(prefix) && word != *prefix);
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| word.strip_suffix(suffix))
                .filter(|base| known.contains(*base));
            let known =
                known.contains(word) || base.is_some() || crates.iter().any(|one| one == word);
            if metric && !known {
                unknown.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert_eq!(unknown, [""; 0], "names of metrics that no process exports");
}

/// Pages for readers; the specification speaks of other implementations, too.
fn documents() -> Vec<std::path::PathBuf> {
    let docs = root().join("docs");
    let mut found = Vec::new();
    for folder in [docs.clone(), docs.join("reference"), docs.join("runbooks")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 40, "{found:?}");
    found
}
