//! For tests, and for providers whose cloud remembers everything.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use bigfleet_model::MachineId;
use bigfleet_provider::protocol::{Kind, Mark};

use super::{Batch, MarkRow, OperationRow, State, Store, StoreError, new_life};
use crate::record::Record;

/// Forgets everything with the process. Clones share their content, so that a test
/// can restart a provider on it.
#[derive(Clone, Debug)]
pub struct MemStore {
    life: u64,
    tables: Arc<Mutex<Tables>>,
}

#[derive(Debug, Default)]
struct Tables {
    revision: u64,
    records: BTreeMap<MachineId, Arc<Record>>,
    operations: BTreeMap<(MachineId, Kind), OperationRow>,
    marks: BTreeMap<(MachineId, Arc<str>), Mark>,
    epochs: BTreeMap<Arc<str>, i64>,
}

impl Default for MemStore {
    fn default() -> Self {
        Self { life: new_life(), tables: Arc::default() }
    }
}

impl MemStore {
    /// An empty one with a life of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemStore {
    fn load(&self) -> Result<State, StoreError> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(State {
            life: self.life,
            revision: tables.revision,
            records: tables.records.values().map(|record| Record::clone(record)).collect(),
            operations: tables
                .operations
                .iter()
                .map(|((machine, _), row)| (machine.clone(), row.clone()))
                .collect(),
            marks: tables
                .marks
                .iter()
                .map(|((machine, shard), mark)| MarkRow {
                    machine: machine.clone(),
                    shard: shard.clone(),
                    mark: *mark,
                })
                .collect(),
            epochs: tables.epochs.iter().map(|(shard, epoch)| (shard.clone(), *epoch)).collect(),
        })
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut guard = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = &mut *guard;
        tables.revision = batch.revision;
        for row in &batch.marks {
            tables.marks.insert((row.machine.clone(), row.shard.clone()), row.mark);
        }
        for (machine, row) in &batch.operations {
            match row {
                Some(row) => {
                    tables.operations.insert((machine.clone(), row.kind), row.clone());
                }
                None => forget(&mut tables.operations, machine),
            }
        }
        for (machine, record) in &batch.records {
            if let Some(record) = record {
                tables.records.insert(machine.clone(), record.clone());
                continue;
            }
            tables.records.remove(machine);
            forget(&mut tables.operations, machine);
            let from = (machine.clone(), Arc::from(""));
            let of_it = |key: &(MachineId, Arc<str>)| key.0 == *machine;
            let marks: Vec<_> =
                tables.marks.range(from..).map(|(key, _)| key.clone()).take_while(of_it).collect();
            for key in marks {
                tables.marks.remove(&key);
            }
        }
        for (shard, epoch) in &batch.epochs {
            tables.epochs.insert(shard.clone(), *epoch);
        }
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn blocks(&self) -> bool {
        false
    }
}

fn forget(operations: &mut BTreeMap<(MachineId, Kind), OperationRow>, machine: &MachineId) {
    for kind in Kind::ALL {
        operations.remove(&(machine.clone(), kind));
    }
}
