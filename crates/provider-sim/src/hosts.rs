//! Which hosts really exist.

use std::{collections::HashMap, path::Path};

use bigfleet_provider_kit::CloudError;

use crate::{
    Error,
    journal::{Entry, Journal},
};

/// At most one host a slot.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    by_slot: HashMap<String, Entry>,
    journal: Option<Journal>,
}

impl Hosts {
    /// `born` are the slots that have a host from the beginning. With a directory, what
    /// was there at the last start is still there.
    pub(crate) fn open<'a>(
        directory: &Path,
        cloud: &str,
        born: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let mut by_slot: HashMap<String, Entry> =
            born.map(|slot| (slot.to_owned(), first(slot))).collect();
        if directory.as_os_str().is_empty() {
            return Ok(Self { by_slot, journal: None });
        }
        let latest = |entries: Vec<Entry>| {
            let latest: HashMap<_, _> =
                entries.into_iter().map(|entry| (entry.slot.clone(), entry)).collect();
            let mut latest: Vec<_> = latest.into_values().collect();
            latest.sort_by(|one, other| one.slot.cmp(&other.slot));
            latest
        };
        let (journal, entries) = Journal::open(&directory.join("cloud"), cloud, latest)?;
        by_slot.extend(entries.into_iter().map(|entry| (entry.slot.clone(), entry)));
        Ok(Self { by_slot, journal: Some(journal) })
    }

    /// Of a slot that has a host: how many it has had.
    pub(crate) fn generation(&self, slot: &str) -> Option<u64> {
        self.by_slot.get(slot).filter(|entry| entry.up).map(|entry| entry.generation)
    }

    /// The name of the slot's host.
    pub(crate) fn reference(&self, slot: &str) -> Option<String> {
        self.generation(slot).map(|generation| reference(slot, generation))
    }

    pub(crate) fn up(&self) -> impl Iterator<Item = (&str, u64)> {
        let up = self.by_slot.values().filter(|entry| entry.up);
        up.map(|entry| (entry.slot.as_str(), entry.generation))
    }

    /// The host that this operation brought before.
    pub(crate) fn brought_by(&self, slot: &str, operation: &str) -> Option<String> {
        let entry = self.by_slot.get(slot)?;
        (entry.up && entry.operation == operation).then(|| reference(slot, entry.generation))
    }

    /// A new host.
    pub(crate) fn bring(&mut self, slot: &str, operation: &str) -> Result<u64, CloudError> {
        let before = self.by_slot.get(slot);
        if before.is_some_and(|entry| entry.up) {
            return Err(CloudError::Fatal(format!("{slot} has a host already; destroy it first")));
        }
        let generation = before.map_or(0, |entry| entry.generation) + 1;
        let (slot, operation) = (slot.to_owned(), operation.to_owned());
        self.write(Entry { slot, generation, up: true, operation })?;
        Ok(generation)
    }

    /// No host any more; false if there was none.
    pub(crate) fn take_away(&mut self, slot: &str) -> Result<bool, CloudError> {
        self.turn(slot, false)
    }

    /// The host that was there last is back.
    pub(crate) fn revive(&mut self, slot: &str) -> Result<bool, CloudError> {
        self.turn(slot, true)
    }

    fn turn(&mut self, slot: &str, up: bool) -> Result<bool, CloudError> {
        let Some(entry) = self.by_slot.get(slot).filter(|entry| entry.up != up) else {
            return Ok(false);
        };
        self.write(Entry { up, ..entry.clone() })?;
        Ok(true)
    }

    fn write(&mut self, entry: Entry) -> Result<(), CloudError> {
        if let Some(journal) = &mut self.journal {
            let failed = |error| CloudError::Retry(format!("the simulated cloud's file: {error}"));
            journal.append(&entry).map_err(failed)?;
        }
        self.by_slot.insert(entry.slot.clone(), entry);
        Ok(())
    }
}

fn first(slot: &str) -> Entry {
    Entry { slot: slot.to_owned(), generation: 1, up: true, operation: String::new() }
}

fn reference(slot: &str, generation: u64) -> String {
    format!("sim://{slot}/{generation}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn hosts_outlive_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Hosts::open(directory.path(), "alpha", ["alpha-metal-0"].into_iter());
        let mut hosts = open().unwrap();
        assert_eq!(hosts.reference("alpha-metal-0").unwrap(), "sim://alpha-metal-0/1");
        assert!(hosts.take_away("alpha-metal-0").unwrap());
        assert!(!hosts.take_away("alpha-metal-0").unwrap());
        hosts.bring("alpha-spot-1", "op-1").unwrap();
        assert!(hosts.bring("alpha-spot-1", "op-2").is_err(), "one host a slot");
        drop(hosts);
        let path = directory.path().join("cloud/alpha.hosts");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}down alpha-sp")).unwrap();

        let mut hosts = open().unwrap();
        assert_eq!(hosts.reference("alpha-metal-0"), None, "born once");
        assert_eq!(hosts.brought_by("alpha-spot-1", "op-1").unwrap(), "sim://alpha-spot-1/1");
        assert_eq!(hosts.brought_by("alpha-spot-1", "op-2"), None);
        hosts.take_away("alpha-spot-1").unwrap();
        assert_eq!(hosts.bring("alpha-spot-1", "op-3").unwrap(), 2, "never the same host again");
        assert!(hosts.revive("alpha-metal-0").unwrap());
        assert_eq!(hosts.up().count(), 2);

        fs::write(&path, "what is this\n").unwrap();
        let error = open().unwrap_err().to_string();
        assert!(error.contains("alpha.hosts") && error.contains("line 1"), "{error}");
    }
}
