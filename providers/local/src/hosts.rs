//! Which slots are reserved, and in which cluster each has its Node.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::{Error, names::node_name};

/// Longer than any transition; a grace beyond it would pass the end of the clock.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86400);

/// A slot that is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reservation {
    /// Of which machine.
    pub(crate) id: String,
    /// Where its Node is, or is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    /// The drain that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eviction: Option<Eviction>,
}

/// A grace begins once: neither a retry nor a restart makes it longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Eviction {
    operation: String,
    until_unix_ms: u64,
}

/// One small file a reservation: it outlives the process, as a computer would. A file
/// that a power cut takes is a host lost, or is found again by its Node.
#[derive(Debug)]
pub(crate) struct Hosts {
    directory: Option<PathBuf>,
    reserved: Mutex<BTreeMap<String, Reservation>>,
}

impl Hosts {
    /// In `state/hosts`; in memory without a state.
    pub(crate) fn open(state: &Path) -> Result<Self, Error> {
        let directory = (!state.as_os_str().is_empty()).then(|| state.join("hosts"));
        let mut reserved = BTreeMap::new();
        if let Some(directory) = &directory {
            let failed = |path: &Path| {
                let path = path.to_owned();
                |source| Error::Hosts { path, source }
            };
            fs::create_dir_all(directory).map_err(failed(directory))?;
            for entry in fs::read_dir(directory).map_err(failed(directory))? {
                let path = entry.map_err(failed(directory))?.path();
                // A write that a kill cut off.
                if path.extension().is_none_or(|extension| extension != "json") {
                    continue;
                }
                let text = fs::read(&path).map_err(failed(&path))?;
                let one: Reservation = serde_json::from_slice(&text)
                    .map_err(io::Error::from)
                    .map_err(failed(&path))?;
                reserved.insert(one.id.clone(), one);
            }
        }
        Ok(Self { directory, reserved: Mutex::new(reserved) })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Reservation>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    pub(crate) fn all(&self) -> BTreeMap<String, Reservation> {
        self.lock().clone()
    }

    /// Of this machine.
    pub(crate) fn get(&self, id: &str) -> Option<Reservation> {
        self.lock().get(id).cloned()
    }

    /// Takes the slot, without a Node.
    pub(crate) fn reserve(&self, id: &str) -> io::Result<()> {
        self.put(Reservation { id: id.to_owned(), cluster: None, eviction: None })
    }

    /// Its Node is, or is about to be, in this cluster. Written before the Node is made,
    /// so that whoever cleans up knows where to look.
    pub(crate) fn place(&self, id: &str, cluster: &str) -> io::Result<()> {
        let (id, cluster) = (id.to_owned(), Some(cluster.to_owned()));
        self.put(Reservation { id, cluster, eviction: None })
    }

    /// Takes a slot whose Node was found without a reservation.
    pub(crate) fn adopt(&self, id: &str, cluster: &str) -> io::Result<()> {
        if self.lock().contains_key(id) { Ok(()) } else { self.place(id, cluster) }
    }

    /// When the grace of this operation ends, which begins now unless it has before.
    pub(crate) fn evict_until(
        &self,
        id: &str,
        operation: &str,
        grace: Duration,
    ) -> io::Result<SystemTime> {
        let Some(mut one) = self.get(id) else { return Ok(SystemTime::now()) };
        if let Some(known) = one.eviction.as_ref().filter(|known| known.operation == operation) {
            return Ok(UNIX_EPOCH + Duration::from_millis(known.until_unix_ms));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let until = now + grace.min(LONGEST);
        let until_unix_ms = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        one.eviction = Some(Eviction { operation: operation.to_owned(), until_unix_ms });
        self.put(one)?;
        Ok(UNIX_EPOCH + until)
    }

    /// Frees the slot.
    pub(crate) fn free(&self, id: &str) -> io::Result<()> {
        let mut reserved = self.lock();
        if let Some(path) = self.path(id) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        reserved.remove(id);
        Ok(())
    }

    fn put(&self, one: Reservation) -> io::Result<()> {
        let mut reserved = self.lock();
        if let Some(path) = self.path(&one.id) {
            let partial = path.with_extension("partial");
            fs::write(&partial, serde_json::to_vec(&one)?)?;
            fs::rename(partial, path)?;
        }
        reserved.insert(one.id.clone(), one);
        Ok(())
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        // Not `with_extension`: a name may hold dots.
        Some(self.directory.as_ref()?.join(format!("{}.json", node_name(id))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_outlive_the_process() {
        let state = tempfile::tempdir().unwrap();
        let hosts = Hosts::open(state.path()).unwrap();
        hosts.reserve("a.b").unwrap();
        hosts.reserve("a.c").unwrap();
        hosts.place("a.c", "cluster/1").unwrap();
        hosts.reserve("d").unwrap();
        hosts.free("d").unwrap();
        hosts.free("d").unwrap();
        fs::write(state.path().join("hosts/e.partial"), "{").unwrap();
        let again = Hosts::open(state.path()).unwrap();
        assert_eq!(again.all(), hosts.all());
        assert_eq!(again.get("a.b").unwrap().cluster, None);
        assert_eq!(again.get("a.c").unwrap().cluster.as_deref(), Some("cluster/1"));
        assert_eq!(again.all().len(), 2);
    }

    #[test]
    fn a_torn_file_fails_the_start_by_name() {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(state.path().join("hosts")).unwrap();
        fs::write(state.path().join("hosts/x.json"), "{").unwrap();
        let error = Hosts::open(state.path()).unwrap_err().to_string();
        assert!(error.contains("x.json"), "{error}");
    }

    #[test]
    fn a_grace_begins_once() {
        let hosts = Hosts::open(Path::new("")).unwrap();
        hosts.place("m", "c").unwrap();
        let first = hosts.evict_until("m", "op-1", Duration::from_secs(60)).unwrap();
        let again = hosts.evict_until("m", "op-1", Duration::from_secs(600)).unwrap();
        assert!(first.duration_since(again).unwrap_or_default() < Duration::from_millis(2));
        assert!(again <= first);
        let next = hosts.evict_until("m", "op-2", Duration::from_secs(600)).unwrap();
        assert!(next > first);
        hosts.evict_until("m", "op-3", Duration::MAX).unwrap();
    }

    #[test]
    fn an_adoption_changes_no_reservation() {
        let hosts = Hosts::open(Path::new("")).unwrap();
        hosts.reserve("m").unwrap();
        hosts.adopt("m", "c").unwrap();
        assert_eq!(hosts.get("m").unwrap().cluster, None);
        hosts.adopt("n", "c").unwrap();
        assert_eq!(hosts.get("n").unwrap().cluster.as_deref(), Some("c"));
    }
}
