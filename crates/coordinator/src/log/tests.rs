//! What survives crashes, cuts and damage.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use proptest::prelude::*;

use super::{
    memory::{Fault, MemoryDisk},
    *,
};

const ROOT: &str = "/data";

fn entry(term: u64, index: u64) -> Record {
    Record::Entry(Position { term, index }, format!("entry {term}.{index}").into_bytes())
}

fn open(disk: &MemoryDisk) -> Result<Contents, LogError> {
    DataDir::lock(Arc::new(disk.clone()), Path::new(ROOT))?.open(7)
}

fn indexes(contents: &Contents) -> Vec<u64> {
    contents.recovered.entries.keys().copied().collect()
}

fn segment(disk: &MemoryDisk) -> PathBuf {
    let dir = Path::new(ROOT).join("wal");
    dir.join(disk.list(&dir).unwrap().last().unwrap())
}

fn vote(term: u64) -> HardState {
    HardState { term, voted: true, node: 1, incarnation: 2 }
}

fn store_vote(disk: &MemoryDisk, term: u64) {
    vote(term).store(disk, &Path::new(ROOT).join("hardstate")).unwrap();
}

#[test]
fn a_second_holder_is_refused() {
    let disk = MemoryDisk::new();
    let held = DataDir::lock(Arc::new(disk.clone()), Path::new(ROOT)).unwrap();
    let error = open(&disk).err().unwrap();
    assert!(error.to_string().contains("/data/LOCK"), "{error}");
    drop(held);
    open(&disk).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let held = DataDir::lock(Arc::new(RealDisk), dir.path()).unwrap();
    assert!(matches!(DataDir::lock(Arc::new(RealDisk), dir.path()), Err(LogError::Locked { .. })));
    drop(held);
    DataDir::lock(Arc::new(RealDisk), dir.path()).unwrap();
}

#[test]
fn the_real_disk_gives_back_what_it_was_given() {
    let dir = tempfile::tempdir().unwrap();
    let (lock, disk): (_, Arc<dyn Disk>) =
        (DataDir::lock(Arc::new(RealDisk), dir.path()).unwrap(), Arc::new(RealDisk));
    let contents = lock.open(7).unwrap();
    assert!(contents.is_empty());
    let writer = Writer::threaded(contents.wal, disk, dir.path().join("hardstate"), None).unwrap();
    writer.hard_state(vote(3)).blocking_recv().unwrap().unwrap();
    let mut pending = Vec::new();
    for index in 0..100 {
        pending.push(writer.log(vec![entry(3, index)]));
    }
    for one in pending {
        one.blocking_recv().unwrap().unwrap();
    }
    lock.set_fleet("u.00000000").unwrap();
    drop(writer);

    let contents = lock.open(8).unwrap();
    assert_eq!(indexes(&contents), (0..100).collect::<Vec<_>>());
    assert_eq!(contents.hard_state, Some(vote(3)));
    assert_eq!((contents.incarnation, contents.fleet.as_deref()), (7, Some("u.00000000")));
    lock.wipe().unwrap();
    let contents = lock.open(8).unwrap();
    assert!(contents.is_empty());
    assert_eq!(contents.incarnation, 8);
}

#[test]
fn a_tail_cut_at_every_byte_loses_only_the_last_batch() {
    let disk = MemoryDisk::new();
    let mut wal = open(&disk).unwrap().wal;
    store_vote(&disk, 1);
    for index in 0..4 {
        wal.write(vec![entry(1, index)]).unwrap();
    }
    let path = segment(&disk);
    let acknowledged = disk.read(&path).unwrap().len();
    wal.write(vec![entry(1, 4), entry(1, 5), entry(1, 6)]).unwrap();
    let whole = disk.read(&path).unwrap().len();
    for cut in acknowledged..whole {
        let disk = disk.after_crash(0);
        disk.edit(&path, |bytes| bytes.truncate(cut));
        let mut contents = open(&disk).unwrap();
        assert_eq!(indexes(&contents), [0, 1, 2, 3], "cut at byte {cut}");
        // The log goes on where it was cut.
        contents.wal.write(vec![entry(2, 4)]).unwrap();
        drop(contents);
        assert_eq!(indexes(&open(&disk).unwrap()), [0, 1, 2, 3, 4]);
    }
    // Garbage of full length is a torn write too.
    let disk = disk.after_crash(0);
    disk.edit(&path, |bytes| bytes[acknowledged..].fill(0));
    assert_eq!(indexes(&open(&disk).unwrap()), [0, 1, 2, 3]);
}

#[test]
fn a_flipped_bit_before_the_tail_names_the_file() {
    let disk = MemoryDisk::new();
    let mut wal = open(&disk).unwrap().wal;
    store_vote(&disk, 1);
    wal.write(vec![entry(1, 0)]).unwrap();
    let path = segment(&disk);
    let first = disk.read(&path).unwrap().len();
    wal.write(vec![entry(1, 1)]).unwrap();
    for byte in 0..first {
        for bit in [0, 3, 7] {
            let disk = disk.after_crash(0);
            disk.edit(&path, |bytes| bytes[byte] ^= 1 << bit);
            let error = open(&disk).err().unwrap_or_else(|| panic!("byte {byte} bit {bit}"));
            assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
    }
}

#[test]
fn a_damaged_or_lost_hard_state_is_refused() {
    let disk = MemoryDisk::new();
    let mut wal = open(&disk).unwrap().wal;
    store_vote(&disk, 4);
    wal.write(vec![entry(4, 0)]).unwrap();
    let path = Path::new(ROOT).join("hardstate");
    let len = disk.read(&path).unwrap().len();
    for byte in 0..len {
        let disk = disk.after_crash(0);
        disk.edit(&path, |bytes| bytes[byte] ^= 1);
        assert!(open(&disk).err().unwrap().to_string().contains("hardstate"), "byte {byte}");
    }
    let short = disk.after_crash(0);
    short.edit(&path, Vec::clear);
    assert!(open(&short).is_err());
    disk.remove_file(&path).unwrap();
    assert!(open(&disk).err().unwrap().to_string().contains("hardstate"));
}

fn snapshot(term: u64, index: u64) -> StoredSnapshot {
    let state = format!("{{\"index\":{index}}}").into_bytes();
    let id = format!("{term}-{index}-{}", 1000 + index);
    let meta = SnapshotMeta { id, index, term, ..SnapshotMeta::default() }.describing(&state);
    StoredSnapshot { meta, state }
}

#[test]
fn the_newest_good_snapshot_is_used_and_two_are_kept() {
    let disk = MemoryDisk::new();
    let snapshots = open(&disk).unwrap().snapshots;
    for index in [9, 10, 100] {
        snapshots.save(&snapshot(1, index)).unwrap();
    }
    let dir = Path::new(ROOT).join("snapshots");
    assert_eq!(disk.list(&dir).unwrap(), ["1-10-1010", "1-100-1100"]);
    assert_eq!(snapshots.load().unwrap().unwrap().meta.index, 100);
    let state = |name: &str| dir.join(name).join("state");
    disk.edit(&state("1-100-1100"), |bytes| bytes[0] ^= 1);
    assert_eq!(snapshots.load().unwrap().unwrap().meta.index, 10);
    disk.edit(&state("1-10-1010"), |bytes| bytes.truncate(1));
    let error = open(&disk).err().unwrap().to_string();
    assert!(error.contains("/data/snapshots/1-1"), "{error}");
}

#[test]
fn purged_entries_need_a_snapshot_and_their_segments_go() {
    let disk = MemoryDisk::new();
    let mut contents = open(&disk).unwrap();
    store_vote(&disk, 1);
    let big = |index| Record::Entry(Position { term: 1, index }, vec![0; 5 << 20]);
    for index in 0..6 {
        contents.wal.write(vec![big(index)]).unwrap();
    }
    let dir = Path::new(ROOT).join("wal");
    assert_eq!(disk.list(&dir).unwrap().len(), 3);
    contents.wal.write(vec![Record::Purge(Position { term: 1, index: 4 })]).unwrap();
    assert_eq!(disk.list(&dir).unwrap().len(), 2, "the purge opened one and removed two");
    drop(contents);
    assert!(open(&disk.after_crash(0)).err().unwrap().to_string().contains("no snapshot"));
    let snapshots = Snapshots::open(Arc::new(disk.clone()), &Path::new(ROOT).join("snapshots"));
    snapshots.unwrap().save(&snapshot(1, 4)).unwrap();
    let contents = open(&disk.after_crash(0)).unwrap();
    assert_eq!(indexes(&contents), [5]);
    assert_eq!(contents.recovered.purged, Some(Position { term: 1, index: 4 }));
}

#[test]
fn low_space_is_seen() {
    let disk = MemoryDisk::new();
    let dir = DataDir::lock(Arc::new(disk.clone()), Path::new(ROOT)).unwrap();
    assert!(!dir.is_low().unwrap());
    disk.set_free(LOW_SPACE - 1);
    assert!(dir.is_low().unwrap());
}

/// One step of a random life.
#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    Cut(u8),
    Purge(u8),
    Vote,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..5_u8).prop_map(Step::Append),
        1 => (1..4_u8).prop_map(Step::Cut),
        1 => (1..6_u8).prop_map(Step::Purge),
        1 => Just(Step::Vote),
    ];
    prop::collection::vec(step, 1..24)
}

/// What a replica has been promised.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    entries: BTreeMap<u64, u64>,
    purged: Option<u64>,
    term: u64,
}

fn records(model: &mut Model, step: &Step) -> Vec<Record> {
    let next = model
        .entries
        .last_key_value()
        .map_or_else(|| model.purged.map_or(0, |p| p + 1), |e| e.0 + 1);
    match *step {
        Step::Append(count) => (next..next + u64::from(count))
            .map(|index| {
                model.entries.insert(index, model.term);
                entry(model.term, index)
            })
            .collect(),
        Step::Cut(count) => {
            let since =
                next.saturating_sub(u64::from(count)).max(model.purged.map_or(0, |p| p + 1));
            model.entries.split_off(&since);
            vec![Record::Cut(since)]
        }
        Step::Purge(count) => {
            let first = model.entries.first_key_value().map_or(next, |e| *e.0);
            let upto = (first + u64::from(count)).min(next).saturating_sub(1);
            if model.purged.is_some_and(|purged| purged >= upto) || upto == 0 {
                return Vec::new();
            }
            model.entries = model.entries.split_off(&(upto + 1));
            model.purged = Some(upto);
            vec![Record::Purge(Position { term: model.term, index: upto })]
        }
        Step::Vote => Vec::new(),
    }
}

fn seen(contents: &Contents) -> Model {
    Model {
        entries: contents.recovered.entries.iter().map(|(i, (at, _))| (*i, at.term)).collect(),
        purged: contents.recovered.purged.map(|at| at.index),
        term: contents.hard_state.as_ref().map_or(0, |state| state.term),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A disk that fails at any operation and then loses what was not synced
    /// gives back exactly what was acknowledged, or that and the one batch
    /// that was being written.
    #[test]
    fn what_was_acknowledged_survives_any_crash(
        steps in steps(), after in 0..120_u64, short in prop::option::of(0..40_usize), keep: u8,
    ) {
        let disk = MemoryDisk::new();
        let contents = open(&disk).unwrap();
        // Purging is legal only with a snapshot; a late one covers all.
        contents.snapshots.save(&snapshot(1, 1_000_000)).unwrap();
        let path = Path::new(ROOT).join("hardstate");
        let writer = Writer::inline(contents.wal, Arc::new(disk.clone()), path);
        let fault = short.map_or(Fault::Error, Fault::ShortWrite);
        disk.fail_after(after, fault);
        let mut model = Model::default();
        let mut allowed = vec![model.clone()];
        for step in &steps {
            let mut next = model.clone();
            let mut told = match step {
                Step::Vote => { next.term += 1; writer.hard_state(vote(next.term)) }
                _ if model.term == 0 => { next.term = 1; writer.hard_state(vote(1)) }
                step => {
                    let records = records(&mut next, step);
                    if records.is_empty() { continue; }
                    writer.log(records)
                }
            };
            if told.try_recv().unwrap().is_ok() {
                model = next;
                allowed = vec![model.clone()];
            } else {
                allowed.push(next);
                prop_assert!(writer.fatal().borrow().is_some());
                prop_assert!(writer.log(vec![entry(9, 9)]).try_recv().unwrap().is_err());
                break;
            }
        }
        let contents = open(&disk.after_crash(keep)).unwrap();
        prop_assert!(allowed.contains(&seen(&contents)), "{:?} not in {allowed:?}", seen(&contents));
    }
}
