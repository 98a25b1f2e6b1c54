//! What the cloud really holds: it outlives the provider's process.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// Hosts by slot; a slot has at most one unless something leaks.
#[derive(Debug)]
pub(super) struct Hosts {
    directory: Option<PathBuf>,
    by_slot: BTreeMap<String, BTreeSet<String>>,
}

impl Hosts {
    /// One empty file a host in `state/cloud`; in memory without a state.
    pub(super) fn open(state: &Path) -> io::Result<Self> {
        let directory = (!state.as_os_str().is_empty()).then(|| state.join("cloud"));
        let mut by_slot: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)?;
            for entry in fs::read_dir(directory)? {
                let name = entry?.file_name();
                // `<slot>@<operation>`; neither holds a slash.
                if let Some((slot, operation)) = name.to_string_lossy().split_once('@') {
                    by_slot.entry(slot.to_owned()).or_default().insert(operation.to_owned());
                }
            }
        }
        Ok(Self { directory, by_slot })
    }

    /// The host's name; the same operation brings the same host.
    pub(super) fn bring(&mut self, slot: &str, operation: &str) -> io::Result<String> {
        if let Some(directory) = &self.directory {
            fs::write(directory.join(format!("{slot}@{operation}")), "")?;
        }
        self.by_slot.entry(slot.to_owned()).or_default().insert(operation.to_owned());
        Ok(format!("fault://{slot}/{operation}"))
    }

    /// Leaves none.
    pub(super) fn take_away(&mut self, slot: &str) -> io::Result<()> {
        for operation in self.by_slot.remove(slot).unwrap_or_default() {
            if let Some(directory) = &self.directory {
                fs::remove_file(directory.join(format!("{slot}@{operation}")))?;
            }
        }
        Ok(())
    }

    pub(super) fn count(&self, slot: &str) -> usize {
        self.by_slot.get(slot).map_or(0, BTreeSet::len)
    }

    /// The host that a description shows.
    pub(super) fn name(&self, slot: &str) -> Option<String> {
        let operation = self.by_slot.get(slot)?.last()?;
        Some(format!("fault://{slot}/{operation}"))
    }
}
