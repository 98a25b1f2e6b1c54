//! The inventory that holds now, and the watch over its file.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use bigfleet_provider_kit::Handle;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tokio::time::sleep;

use crate::inventory::{Inventory, InventoryError};

/// Between two looks at the file. It is read when two looks saw the same: half of a
/// file that is being written may well be valid, and would retire the other half.
const LOOK: Duration = Duration::from_secs(1);

/// One inventory at a time.
#[derive(Debug)]
pub(crate) struct Shelf {
    current: RwLock<Arc<Inventory>>,
    reloads: Family<Outcome, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// Tells one content of a file from the next.
pub(crate) type Stamp = Result<(u64, u64, i64, i64, u64), io::ErrorKind>;

impl Shelf {
    pub(crate) fn new(inventory: Inventory) -> Self {
        Self { current: RwLock::new(Arc::new(inventory)), reloads: Family::default() }
    }

    /// The last good one.
    pub(crate) fn current(&self) -> Arc<Inventory> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        let help = "Changed inventories by outcome: loaded, or refused and the last one kept";
        registry.register("inventory_reloads", help, self.reloads.clone());
    }

    /// Follows the file for ever. `seen` is its stamp from before the first load.
    pub(crate) async fn follow(self: Arc<Self>, file: PathBuf, mut seen: Stamp, handle: Handle) {
        let mut last_look = seen;
        loop {
            sleep(LOOK).await;
            let look = stamp(&file);
            let settled = look == last_look;
            last_look = look;
            if look == seen || !settled {
                continue;
            }
            seen = look;
            let (shelf, path) = (self.clone(), file.clone());
            let reload = tokio::task::spawn_blocking(move || shelf.reload(&path));
            let outcome = match reload.await {
                Ok(Ok(machines)) => {
                    tracing::info!(machines, "inventory loaded");
                    handle.sweep();
                    "loaded"
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "inventory refused; the last good one stays");
                    "refused"
                }
                Err(error) => {
                    tracing::error!(%error, "inventory not read; the last good one stays");
                    "refused"
                }
            };
            self.reloads.get_or_create(&Outcome { outcome }).inc();
        }
    }

    fn reload(&self, file: &Path) -> Result<usize, InventoryError> {
        let refuse = |(path, problem)| InventoryError { file: file.to_owned(), path, problem };
        let next = Inventory::load(file)?.succeed(&self.current()).map_err(refuse)?;
        let machines = next.machines.len();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(machines)
    }
}

/// Through links, as a mounted configuration changes by swapping one.
pub(crate) fn stamp(file: &Path) -> Stamp {
    let found = fs::metadata(file).map_err(|error| error.kind())?;
    Ok((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
}
