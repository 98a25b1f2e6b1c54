//! Committed files are those that the sources make.

use std::collections::BTreeSet;

use bigfleet_charts::{GENERATE, generated, root};

#[test]
fn committed_files_are_current() {
    for file in generated::files().unwrap() {
        let committed = std::fs::read_to_string(root().join(&file.path)).unwrap_or_default();
        assert!(committed == file.text, "{} is stale; run: {GENERATE}", file.path);
    }
}

/// A dashboard or definition that was taken out of its source must not be shipped any longer.
#[test]
fn generated_folders_hold_nothing_else() {
    let expected: BTreeSet<String> =
        generated::files().unwrap().into_iter().map(|file| file.path).collect();
    for folder in expected
        .iter()
        .filter_map(|path| path.rsplit_once('/'))
        .map(|(folder, _)| folder)
        .filter(|folder| folder.ends_with("/dashboards") || folder.ends_with("/crds"))
        .collect::<BTreeSet<_>>()
    {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            assert!(expected.contains(&path), "{path} is not generated; delete it");
        }
    }
}
