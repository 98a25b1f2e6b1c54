//! The machines there are, as an operator wrote them down (provider chapter §10).

mod file;
mod secrets;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use bigfleet_provider_kit::{Offer, ShapeCheck};
pub use file::Bmc;
use file::{Capacity, File, RawMachine};

use crate::hooks::Hook;

/// A checked inventory. One that is wrong anywhere is refused as a whole: half of it
/// would retire machines that nobody meant to remove.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// `HostRef.provider`.
    pub provider: String,
    /// Where the executables lie.
    pub hooks_dir: PathBuf,
    /// How long one of them may take.
    pub hook_timeout: Duration,
    /// By id.
    pub machines: BTreeMap<String, Entry>,
    /// Removed while this process ran: a machine that still serves a cluster must be
    /// drained with what was known of it.
    departed: BTreeMap<String, Entry>,
}

/// One machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What shards see of it.
    pub offer: Offer,
    /// How hooks reach its board; never leaves this process otherwise.
    pub bmc: Option<Bmc>,
}

/// Why an inventory is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {path}: {problem}", file.display())]
pub struct InventoryError {
    /// Which file.
    pub file: PathBuf,
    /// Where in it, as `machines[3].bmc`.
    pub path: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// A path within the file, and what is wrong there.
type Wrong = (String, String);

impl Inventory {
    /// Reads and checks the file, and that its hooks can be run.
    pub fn load(file: &Path) -> Result<Self, InventoryError> {
        let refuse = |(path, problem)| InventoryError { file: file.to_owned(), path, problem };
        let text = fs::read_to_string(file).map_err(|error| {
            refuse(("file".into(), format!("{error}; see that it exists and may be read")))
        })?;
        // Hooks may be told relative to the file that names them.
        let beside = file.parent().unwrap_or_else(|| Path::new(""));
        let inventory = Self::parse(&text, beside).map_err(refuse)?;
        Hook::check_all(&inventory.hooks_dir)
            .map_err(|problem| refuse(("hooks.dir".into(), problem)))?;
        Ok(inventory)
    }

    /// Checks the text alone; relative paths are taken from `beside`.
    pub(crate) fn parse(text: &str, beside: &Path) -> Result<Self, Wrong> {
        let File { provider, defaults, hooks, machines } = file::read(text)?;
        if provider.is_empty() || provider.contains(|c: char| c == '/' || c.is_control()) {
            return wrong("provider", "write a name without a slash; hosts carry it for life");
        }
        if machines.is_empty() {
            return wrong("machines", "empty; list at least one machine");
        }
        let shape = ShapeCheck::new(&*provider);
        let (mut entries, mut hosts) = (BTreeMap::new(), BTreeMap::new());
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        for (number, raw) in machines.into_iter().enumerate() {
            let at = |field: &str| format!("machines[{number}].{field}");
            let entry = entry(raw, &defaults).map_err(|(field, problem)| (at(field), problem))?;
            shape
                .machine(&entry.offer)
                .map_err(|misshapen| (at(misshapen.field), misshapen.problem))?;
            let offer = &entry.offer;
            let doubled = |other: usize, field: &str| {
                let problem = format!("machines[{other}] has the same; it names one machine alone");
                Err((at(field), problem))
            };
            if let Some(other) = positions.insert(offer.id.clone(), number) {
                return doubled(other, "id");
            }
            if let Some(other) = hosts.insert(offer.host.clone(), number) {
                return doubled(other, "host");
            }
            entries.insert(offer.id.clone(), entry);
        }
        Ok(Self {
            provider,
            hooks_dir: beside.join(hooks.dir),
            hook_timeout: hooks.timeout,
            machines: entries,
            departed: BTreeMap::new(),
        })
    }

    /// Without a file, for a simulated backend.
    pub(crate) fn generated(provider: String, entries: Vec<Entry>) -> Self {
        let by_id = |entry: Entry| (entry.offer.id.clone(), entry);
        Self {
            provider,
            hooks_dir: PathBuf::new(),
            hook_timeout: file::TIMEOUT,
            machines: entries.into_iter().map(by_id).collect(),
            departed: BTreeMap::new(),
        }
    }

    /// A machine, also one that was removed and is still at work.
    #[must_use]
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.machines.get(id).or_else(|| self.departed.get(id))
    }

    /// Takes the place of `old`: what never changes must not have changed.
    pub(crate) fn succeed(mut self, old: &Self) -> Result<Self, Wrong> {
        if self.provider != old.provider {
            return wrong("provider", "never changes; start another process for another provider");
        }
        for (id, entry) in &self.machines {
            let Some(known) = old.machines.get(id) else { continue };
            let (new, known) = (&entry.offer, &known.offer);
            let same = [
                ("host", new.host == known.host),
                ("instance_type", new.instance_type == known.instance_type),
                ("zone", new.zone == known.zone),
                ("capacity_type", new.capacity_type == known.capacity_type),
            ];
            if let Some((field, _)) = same.iter().find(|(_, same)| !same) {
                let problem =
                    "never changes while the entry lives; give another machine another id";
                return wrong(&format!("machines[id={id:?}].{field}"), problem);
            }
        }
        self.departed = old.departed.clone();
        self.departed.extend(old.machines.clone());
        self.departed.retain(|id, _| !self.machines.contains_key(id));
        Ok(self)
    }
}

fn wrong<T>(path: &str, problem: &str) -> Result<T, Wrong> {
    Err((path.to_owned(), problem.to_owned()))
}

/// Fills in the defaults.
fn entry(raw: RawMachine, defaults: &file::Defaults) -> Result<Entry, (&'static str, String)> {
    let missing = |field| (field, "missing; write it here or in defaults".to_owned());
    let capacity = raw.capacity_type.or_else(|| defaults.capacity_type.clone()).unwrap_or_default();
    let Capacity::Owned(capacity_type) = capacity else {
        let problem = "write BARE_METAL or RESERVED; what is rented could never be given back, \
                       since this provider has no Delete";
        return Err(("capacity_type", problem.to_owned()));
    };
    let offer = Offer {
        id: raw.id,
        host: Some(raw.host),
        instance_type: raw
            .instance_type
            .or_else(|| defaults.instance_type.clone())
            .ok_or_else(|| missing("instance_type"))?,
        zone: raw.zone.or_else(|| defaults.zone.clone()).ok_or_else(|| missing("zone"))?,
        capacity_type,
        price_per_hour: raw.price_per_hour.or(defaults.price_per_hour).unwrap_or_default(),
        interruption_probability: raw
            .interruption_probability
            .or(defaults.interruption_probability)
            .unwrap_or_default(),
        resources: file::texts(raw.resources),
        allocatable: file::texts(raw.allocatable),
        labels: raw.labels,
    };
    Ok(Entry { offer, bmc: raw.bmc })
}

#[cfg(test)]
mod tests;
