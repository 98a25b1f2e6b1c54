//! A store in a directory, on an embedded database.
//!
//! The database gives what the chapter asks for: commits that are whole or absent
//! after a crash, checksums, an exclusive lock. One transaction holds a whole group
//! of mutations, so that they share one fsync.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_model::MachineId;
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{Kind, Mark, Operation, OperationId},
};
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
};

use super::{Batch, MarkRow, OperationRow, State, Store, StoreError, new_life};
use crate::record::Record;

/// The database's name in its directory.
const FILE: &str = "provider.redb";
/// Everything is in memory already; the database is read once.
const CACHE_BYTES: usize = 32 << 20;
/// The layout below.
const VERSION: u64 = 1;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const MACHINES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("machines");
/// (machine, kind) → (operation id, start in unix milliseconds, grace in seconds)
const OPERATIONS: TableDefinition<'_, (&str, &str), (&str, u64, u64)> =
    TableDefinition::new("operations");
/// (machine, shard) → (epoch, sequence)
const MARKS: TableDefinition<'_, (&str, &str), (i64, i64)> = TableDefinition::new("marks");
const EPOCHS: TableDefinition<'_, &str, i64> = TableDefinition::new("epochs");

/// Durable, in a directory of its own.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    /// None after a failed write: the next commit opens it again.
    database: Mutex<Option<Database>>,
    /// A defect's backlog.
    torn: Mutex<Batch>,
}

impl FileStore {
    /// Opens the store in this directory, or creates it there.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(directory).map_err(|error| StoreError::Io {
            path: directory.to_owned(),
            problem: error.to_string(),
        })?;
        let path = directory.join(FILE);
        let mut database = open(&path)?;
        verify(&path, &mut database)?;
        initialise(&path, &database)?;
        Ok(Self { path, database: Mutex::new(Some(database)), torn: Mutex::default() })
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut slot = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        // A database that failed to write refuses everything from then on.
        let database = match slot.take() {
            Some(database) => database,
            None => open(&self.path)?,
        };
        write(&database, batch).map_err(|error| storage(&self.path, &error))?;
        *slot = Some(database);
        Ok(())
    }
}

impl Store for FileStore {
    fn load(&self) -> Result<State, StoreError> {
        let slot = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let database = slot.as_ref().ok_or_else(|| StoreError::Io {
            path: self.path.clone(),
            problem: "closed after a failed write".into(),
        })?;
        read(&self.path, database)
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        if !active(Mutant::TornRecordAccepted) {
            return self.write(batch);
        }
        // Half of it now, the other half with the next one.
        let mut torn = self.torn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = batch.clone();
        std::mem::swap(&mut now.operations, &mut torn.operations);
        std::mem::swap(&mut now.marks, &mut torn.marks);
        self.write(&now)
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        // Every commit is whole by itself; closing spares the next start its check.
        let mut slot = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        drop(slot.take());
        Ok(())
    }
}

fn open(path: &Path) -> Result<Database, StoreError> {
    let create = || Database::builder().set_cache_size(CACHE_BYTES).create(path);
    match std::panic::catch_unwind(create) {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => Err(StoreError::Locked(path.to_owned())),
        Ok(Err(DatabaseError::Storage(error))) => Err(storage(path, &error.into())),
        Ok(Err(error)) => Err(corrupt(path, &error)),
        // The library asserts what a damaged file can break.
        Err(_) => Err(corrupt(path, "the database cannot be read")),
    }
}

fn verify(path: &Path, database: &mut Database) -> Result<(), StoreError> {
    let checked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| database.check_integrity()));
    match checked {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(corrupt(path, "checksums do not match")),
        Ok(Err(error)) => Err(corrupt(path, &error)),
        Err(_) => Err(corrupt(path, "the database cannot be read")),
    }
}

fn corrupt(path: &Path, problem: &(impl ToString + ?Sized)) -> StoreError {
    StoreError::Corrupt { path: path.to_owned(), problem: problem.to_string() }
}

fn storage(path: &Path, error: &redb::Error) -> StoreError {
    match error {
        redb::Error::Corrupted(problem) => corrupt(path, problem),
        // What is not a database at all shows as bad data.
        redb::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            corrupt(path, error)
        }
        error => StoreError::Io { path: path.to_owned(), problem: error.to_string() },
    }
}

/// Gives a new store its version and its life.
fn initialise(path: &Path, database: &Database) -> Result<(), StoreError> {
    let transaction = || -> Result<Option<u64>, redb::Error> {
        let transaction = database.begin_write()?;
        let found = {
            let mut meta = transaction.open_table(META)?;
            let found = meta.get("version")?.map(|value| value.value());
            if found.is_none() {
                meta.insert("version", VERSION)?;
                meta.insert("life", new_life())?;
                meta.insert("revision", 0)?;
                transaction.open_table(MACHINES)?;
                transaction.open_table(OPERATIONS)?;
                transaction.open_table(MARKS)?;
                transaction.open_table(EPOCHS)?;
            }
            found
        };
        if found.is_none() {
            transaction.commit()?;
        }
        Ok(found)
    };
    match transaction().map_err(|error| storage(path, &error))? {
        Some(found) if found != VERSION => {
            Err(StoreError::Version { path: path.to_owned(), found, known: VERSION })
        }
        _ => Ok(()),
    }
}

fn write(database: &Database, batch: &Batch) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        let mut machines = transaction.open_table(MACHINES)?;
        let mut operations = transaction.open_table(OPERATIONS)?;
        let mut marks = transaction.open_table(MARKS)?;
        let mut epochs = transaction.open_table(EPOCHS)?;
        meta.insert("revision", batch.revision)?;
        for row in batch.marks.iter().filter(|_| !active(Mutant::MarksNotStored)) {
            let mark = (row.mark.epoch, row.mark.sequence);
            marks.insert((row.machine.as_str(), &*row.shard), mark)?;
        }
        for (machine, row) in
            batch.operations.iter().filter(|_| !active(Mutant::OperationsNotStored))
        {
            let machine = machine.as_str();
            match row {
                Some(row) => {
                    let operation = &row.operation;
                    let started = u64::try_from(operation.started.as_millis()).unwrap_or(u64::MAX);
                    let value = (operation.id.as_str(), started, operation.grace.as_secs());
                    operations.insert((machine, row.kind.name()), value)?;
                }
                None => {
                    for kind in Kind::ALL {
                        operations.remove((machine, kind.name()))?;
                    }
                }
            }
        }
        for (machine, record) in &batch.records {
            let machine = machine.as_str();
            if let Some(record) = record {
                machines.insert(machine, record.encode().as_slice())?;
                continue;
            }
            machines.remove(machine)?;
            for kind in Kind::ALL {
                operations.remove((machine, kind.name()))?;
            }
            let shards: Vec<String> = marks
                .range((machine, "")..)?
                .map_while(|row| match row {
                    Ok((key, _)) if key.value().0 == machine => Some(Ok(key.value().1.to_owned())),
                    Ok(_) => None,
                    Err(error) => Some(Err(error)),
                })
                .collect::<Result<_, StorageError>>()?;
            for shard in &shards {
                marks.remove((machine, shard.as_str()))?;
            }
        }
        for (shard, epoch) in &batch.epochs {
            epochs.insert(&**shard, *epoch)?;
        }
        // Once a call, not once a commit: a group of calls costs as much as they
        // would one by one, however fast the disk is.
        for _ in batch.marks.iter().filter(|_| active(Mutant::StoreScans)) {
            let all: Vec<_> = machines
                .iter()?
                .map(|row| row.map(|(id, bytes)| (id.value().to_owned(), bytes.value().to_vec())))
                .collect::<Result<_, StorageError>>()?;
            for (id, bytes) in &all {
                machines.insert(id.as_str(), bytes.as_slice())?;
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

fn read(path: &Path, database: &Database) -> Result<State, StoreError> {
    let mut state = State::default();
    let mut bad = None;
    let mut scan = || -> Result<(), redb::Error> {
        let transaction = database.begin_read()?;
        let meta = transaction.open_table(META)?;
        state.life = meta.get("life")?.map_or(0, |value| value.value());
        state.revision = meta.get("revision")?.map_or(0, |value| value.value());
        for row in transaction.open_table(MACHINES)?.iter()? {
            let (id, bytes) = row?;
            match Record::decode(bytes.value()) {
                Ok(record) if record.machine.id.as_str() == id.value() => {
                    state.records.push(record)
                }
                Ok(record) => bad = Some(format!("{:?} under {:?}", record.machine.id, id.value())),
                Err(problem) => bad = Some(format!("machine {:?}: {problem}", id.value())),
            }
        }
        for row in transaction.open_table(OPERATIONS)?.iter()? {
            let (key, value) = row?;
            let ((machine, kind), (id, started, grace)) = (key.value(), value.value());
            match (Kind::from_name(kind), OperationId::parse(id)) {
                (Some(kind), Some(id)) => {
                    let started = Duration::from_millis(started);
                    let operation = Operation { id, started, grace: Duration::from_secs(grace) };
                    let row = OperationRow { kind, operation };
                    state.operations.push((MachineId::from(machine), row));
                }
                _ => bad = Some(format!("operation {id:?} of kind {kind:?} on {machine:?}")),
            }
        }
        for row in transaction.open_table(MARKS)?.iter()? {
            let (key, value) = row?;
            let ((machine, shard), (epoch, sequence)) = (key.value(), value.value());
            state.marks.push(MarkRow {
                machine: MachineId::from(machine),
                shard: Arc::from(shard),
                mark: Mark { epoch, sequence },
            });
        }
        for row in transaction.open_table(EPOCHS)?.iter()? {
            let (shard, epoch) = row?;
            state.epochs.push((Arc::from(shard.value()), epoch.value()));
        }
        Ok(())
    };
    scan().map_err(|error| storage(path, &error))?;
    if active(Mutant::LastMachinesNotStored) {
        state.records.sort_by_key(|record| record.revision);
        state.records.truncate(state.records.len() * 99 / 100);
    }
    match bad {
        Some(problem) => Err(corrupt(path, &problem)),
        None => Ok(state),
    }
}
