//! Sample objects, offered to the server one file at a time.

use std::fs;
use std::path::Path;

use super::kubectl::Cluster;

const APPLY: [&str; 4] = ["apply", "--dry-run=server", "-f", "-"];

/// Name and text of each file in a folder of samples.
fn samples(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(folder);
    let mut samples: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()))
        .collect();
    samples.sort();
    assert!(!samples.is_empty());
    samples
}

pub(crate) fn good_ones_are_accepted(cluster: &Cluster) {
    for (_, yaml) in samples("good") {
        cluster.ok_with(&APPLY, &yaml);
    }
}

/// A bad sample starts with one or more lines `# expect: <part of the error>`.
pub(crate) fn bad_ones_are_refused_for_the_expected_reason(cluster: &Cluster) {
    let mut wrong = Vec::new();
    for (name, yaml) in samples("bad") {
        let expected: Vec<&str> =
            yaml.lines().map_while(|line| line.strip_prefix("# expect: ")).collect();
        assert!(!expected.is_empty(), "{name} does not say which error it expects");
        let error = cluster.refused(&APPLY, &yaml);
        for part in expected {
            if part.is_empty() || !error.contains(part) {
                wrong.push(format!("{name}\n  expected: {part}\n  got: {error}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
