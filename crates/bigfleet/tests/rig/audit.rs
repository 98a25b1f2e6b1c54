//! What shards wrote down.

use std::{fs, path::Path};

use bigfleet_shard::audit::Record;

/// All records of an audit log, but for a line that is being written.
pub(crate) fn records(audit: &Path) -> Vec<Record> {
    let text = fs::read_to_string(audit).unwrap();
    let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
