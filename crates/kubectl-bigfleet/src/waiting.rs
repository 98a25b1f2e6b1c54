//! The pods that wait for a node, each with its reason in a few words.

use std::iter::once;

use bigfleet_plain::table::table;

use crate::{
    picture::Picture,
    why::{since, verdict},
};

const HEAD: [&str; 4] = ["NAMESPACE", "POD", "FOR", "STATE"];

/// Pods that are named; of more, only the number is.
const NAMED: usize = 50;

/// All of them, by namespace and name.
#[must_use]
pub fn screen(pods: &[Picture]) -> String {
    let mut rows: Vec<Vec<String>> = pods.iter().filter_map(row).collect();
    if rows.is_empty() {
        return "no pod waits for a node\n".to_owned();
    }
    rows.sort();
    let more = rows.len().saturating_sub(NAMED);
    rows.truncate(NAMED);
    let mut text = table(once(HEAD.map(str::to_owned).to_vec()).chain(rows));
    if more > 0 {
        text += &format!("and {more} more; -n shows those of one namespace\n");
    }
    text + "`kubectl bigfleet why NAMESPACE/POD` says what to do\n"
}

fn row(picture: &Picture) -> Option<Vec<String>> {
    let verdict = verdict(picture);
    let metadata = &picture.pod.metadata;
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let row = || {
        vec![
            part(&metadata.namespace),
            part(&metadata.name),
            since(picture.now, created),
            verdict.state.clone(),
        ]
    };
    verdict.waits.then(row)
}
