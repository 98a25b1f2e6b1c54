//! The store in a directory: it survives a kill, and refuses what it cannot trust.

use std::{fs, path::Path, sync::Arc};

use bigfleet_provider_kit::{
    Config, FileStore, Kind, MachineState as Model, Record, Store,
    protocol::{FencePolicy, Mark, Operation, OperationId},
    store::{Batch, MarkRow, OperationRow, State, StoreError},
};
use bigfleet_wire::v1alpha1::{CreateRequest, MachineState};
use tonic::Code;

use crate::{
    chaos::{Random, seeds},
    rack::Rack,
    rig::{Rig, config},
};

#[tokio::test]
async fn everything_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileStore::open(directory.path()).unwrap();
    let rack = || Rack::open(4, &directory.path().join("rack")).unwrap();
    let mut rig = Rig::local(rack(), open(), config()).await.unwrap();
    rig.create("slot-000000").await.unwrap();
    rig.reaches("slot-000000", MachineState::Idle).await;
    let ack = rig.configure("slot-000000", "c-1").await.unwrap();
    let before = rig.reaches("slot-000000", MachineState::Configured).await;
    let revision = rig.list(Default::default()).await.revision;
    rig.stop().await;

    let store = open();
    let state = store.load().unwrap();
    assert_eq!(state.records.len(), 4);
    assert_eq!(state.marks.len(), 1);
    assert_eq!(state.operations.len(), 2);
    let mut rig = Rig::local(rack(), store, config()).await.unwrap();
    assert_eq!(rig.get("slot-000000").await, before);
    let delta =
        bigfleet_wire::v1alpha1::ListFilter { since_revision: revision, ..Default::default() };
    assert!(rig.list(delta).await.machines.is_empty(), "the cursor still works");
    let stale = rig.configure("slot-000000", "c-1").await.unwrap_err();
    assert_eq!(stale.code(), Code::FailedPrecondition, "the mark was kept");
    let mut rig = rig.after(100);
    assert_eq!(rig.configure("slot-000000", "c-1").await.unwrap().operation_id, ack.operation_id);
    rig.stop().await;
}

/// The highest epoch of a shard counts everywhere, also one that named a machine that is
/// not there, and after a restart.
#[tokio::test]
async fn strict_epochs_are_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileStore::open(directory.path()).unwrap();
    let rack = || Rack::open(2, &directory.path().join("rack")).unwrap();
    let start = async |strict_epoch| {
        let fence = FencePolicy { strict_epoch, ..FencePolicy::default() };
        Rig::local(rack(), open(), Config { fence, ..config() }).await.unwrap()
    };
    let create = async |rig: &mut Rig, id: &str, shard_epoch| {
        let request = CreateRequest {
            machine_id: id.into(),
            shard_id: "s".into(),
            shard_epoch,
            sequence_number: 1,
        };
        rig.client.create(request).await.map_or_else(|status| status.code(), |_| Code::Ok)
    };
    let mut rig = start(true).await;
    assert_eq!(create(&mut rig, "nobody", 7).await, Code::NotFound);
    assert_eq!(create(&mut rig, "slot-000000", 6).await, Code::FailedPrecondition);
    rig.stop().await;
    let mut rig = start(true).await;
    assert_eq!(create(&mut rig, "slot-000000", 6).await, Code::FailedPrecondition);
    assert_eq!(create(&mut rig, "slot-000000", 7).await, Code::Ok);
    rig.stop().await;
    // First contact of shard and machine: accepted where epochs are not strict.
    let mut rig = start(false).await;
    assert_eq!(create(&mut rig, "slot-000001", 6).await, Code::Ok);
    rig.stop().await;
}

#[test]
fn a_second_process_is_refused_with_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let _first = FileStore::open(directory.path()).unwrap();
    let error = FileStore::open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::Locked(_)), "{error}");
    assert!(error.to_string().contains(&*directory.path().to_string_lossy()), "{error}");
}

fn machine(id: &str) -> bigfleet_provider_kit::Machine {
    let offer = bigfleet_provider_kit::Offer {
        id: id.into(),
        host: None,
        instance_type: "t".into(),
        zone: "z".into(),
        capacity_type: bigfleet_provider_kit::CapacityType::BareMetal,
        price_per_hour: 0.0,
        interruption_probability: 0.0,
        resources: [].into(),
        allocatable: [].into(),
        labels: [].into(),
    };
    bigfleet_provider_kit::ShapeCheck::new("p").machine(&offer).unwrap()
}

/// Number `n` of a history that anybody can check.
fn batch(number: u64) -> Batch {
    let id = format!("m-{}", number % 50);
    let mut record = Record::new(machine(&id), std::time::Duration::from_millis(number));
    record.revision = number;
    let operation = Operation {
        id: OperationId::parse(&format!("op-{number}")).unwrap(),
        started: std::time::Duration::from_millis(number),
        grace: std::time::Duration::ZERO,
    };
    Batch {
        revision: number,
        records: vec![(id.as_str().into(), Some(Arc::new(record)))],
        operations: vec![(
            id.as_str().into(),
            Some(OperationRow { kind: Kind::Create, operation }),
        )],
        marks: vec![MarkRow {
            machine: id.as_str().into(),
            shard: "s".into(),
            mark: Mark { epoch: 1, sequence: number as i64 },
        }],
        epochs: vec![("s".into(), number as i64)],
    }
}

/// All of a batch or nothing of it, up to the last.
fn check(state: &State) {
    for record in &state.records {
        assert_eq!(record.machine.state, Model::Speculative);
        let of_it = |row: &&(bigfleet_model::MachineId, OperationRow)| row.0 == record.machine.id;
        let (_, row) = state.operations.iter().find(of_it).unwrap();
        assert_eq!(row.operation.id.as_str(), format!("op-{}", record.revision));
        let mark = state.marks.iter().find(|row| row.machine == record.machine.id).unwrap();
        assert_eq!(mark.mark.sequence as u64, record.revision);
        assert!(record.revision + 50 > state.revision, "a hole in the history");
    }
    assert_eq!(state.epochs.first().map_or(0, |row| row.1 as u64), state.revision);
}

const ROLE: &str = "BIGFLEET_TEST_STORE";

/// Not a test by itself: what the next one kills.
#[test]
fn child_that_commits_until_it_is_killed() {
    let Ok(directory) = std::env::var(ROLE) else { return };
    let store = FileStore::open(Path::new(&directory)).unwrap();
    let from = store.load().unwrap().revision;
    for number in from + 1.. {
        store.commit(&batch(number)).unwrap();
        println!("committed {number}");
    }
}

#[test]
fn provider_inv_03_a_kill_at_any_point_loses_nothing_acknowledged() {
    use std::io::{BufRead, BufReader};
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(seeds(1).start);
    println!("seed {}", seeds(1).start);
    let mut last = 0;
    for _ in 0..25 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "durable::child_that_commits_until_it_is_killed"])
            .env(ROLE, directory.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = 1 + random.below(60);
        let mut seen = 0;
        for line in lines {
            let line = line.unwrap();
            let Some(number) = line.rsplit_once("committed ") else { continue };
            last = number.1.parse().unwrap();
            seen += 1;
            if seen == wanted {
                // SIGKILL, wherever the next commit is by now.
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let state = FileStore::open(directory.path()).unwrap().load().unwrap();
        assert!(state.revision >= last, "{} was acknowledged, {} found", last, state.revision);
        check(&state);
    }
}

#[test]
fn damage_is_refused_or_harmless_and_never_believed() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    for number in 1..=120 {
        store.commit(&batch(number)).unwrap();
    }
    let expected = store.load().unwrap();
    store.checkpoint().unwrap();
    drop(store);
    let file = directory.path().join("provider.redb");
    let sound = fs::read(&file).unwrap();
    let mut refused = 0;
    for seed in seeds(60) {
        let mut random = Random::new(seed);
        let mut bytes = sound.clone();
        match random.below(4) {
            0 => bytes.truncate(random.below(sound.len() as u64) as usize),
            _ => {
                let at = random.below(sound.len() as u64) as usize;
                let end = (at + 4096).min(bytes.len());
                bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
            }
        }
        fs::write(&file, &bytes).unwrap();
        match FileStore::open(directory.path()).and_then(|store| store.load()) {
            // An unused page.
            Ok(state) => assert_eq!(state, expected, "seed {seed}"),
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(text.contains("provider.redb"), "seed {seed}: {text}");
            }
        }
    }
    assert!(refused > 0);
    fs::write(&file, b"not a database at all, but long enough to be looked at").unwrap();
    assert!(FileStore::open(directory.path()).is_err());
}
