//! Where shards were last seen, kept beside the configuration: the brake must work with
//! every coordinator down.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use bigfleet_wire::v1alpha1::ShardRegistryEntry;

/// One file per fleet: shard id to address, as JSON.
#[derive(Debug, Clone)]
pub struct KnownShards {
    path: Option<PathBuf>,
}

/// Shard id to address.
pub type Addresses = BTreeMap<String, String>;

impl KnownShards {
    /// Of the fleet that is called so, in this folder.
    #[must_use]
    pub fn of(folder: Option<&Path>, fleet: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = fleet.chars().map(plain).collect();
        Self { path: folder.map(|folder| folder.join(format!("shards-{name}.json"))) }
    }

    /// What was kept; nothing if there is no file, or none that can be read.
    #[must_use]
    pub fn read(&self) -> Addresses {
        let text = self.path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Keeps what a coordinator listed, in place of what was.
    pub fn keep(&self, shards: &[ShardRegistryEntry]) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let addresses = of_list(shards);
        if addresses == self.read() {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Two commands at once each write a file of their own.
        let staged = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&staged, serde_json::to_vec_pretty(&addresses)?)?;
        fs::rename(staged, path)
    }
}

/// Shards that said where they are.
#[must_use]
pub fn of_list(shards: &[ShardRegistryEntry]) -> Addresses {
    let dialled = shards.iter().filter(|shard| !shard.address.is_empty());
    dialled.map(|shard| (shard.shard_id.clone(), shard.address.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, address: &str) -> ShardRegistryEntry {
        ShardRegistryEntry {
            shard_id: id.to_owned(),
            address: address.to_owned(),
            ..ShardRegistryEntry::default()
        }
    }

    #[test]
    fn the_last_list_is_kept_per_fleet() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("bigfleet");
        let known = KnownShards::of(Some(&folder), "prod");
        assert!(known.read().is_empty());
        known.keep(&[entry("s-1", "a:1"), entry("s-2", "b:1"), entry("s-3", "")]).unwrap();
        assert_eq!(known.read().len(), 2);
        known.keep(&[entry("s-1", "c:1")]).unwrap();
        assert_eq!(known.read(), Addresses::from([("s-1".to_owned(), "c:1".to_owned())]));
        assert!(KnownShards::of(Some(&folder), "dev").read().is_empty());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_broken_file_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("shards-a-1-b-1.json"), "{").unwrap();
        assert!(KnownShards::of(Some(dir.path()), "a:1,b:1").read().is_empty());
        KnownShards::of(None, "x").keep(&[entry("s", "a:1")]).unwrap();
    }
}
