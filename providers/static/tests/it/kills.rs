//! Kills at any moment of a churn with real hooks: nothing acknowledged is forgotten, no
//! two hooks ever work on one machine, and no join secret stays.
//!
//! `BIGFLEET_HOOK_KILLS` is how many, `BIGFLEET_SEED` replays.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, SystemTime},
};

use bigfleet_wire::v1alpha1::{Machine, MachineState};

use crate::rig::{Rig, configure, drain};

const IDS: [&str; 8] = ["m-0", "m-1", "m-2", "m-3", "m-4", "m-5", "m-6", "m-7"];

/// Tells when another hook works on the same machine, then takes its time. One whose
/// provider was killed before it was told its errand does nothing.
const ALONE: &str = r#"
[ -n "$INPUT" ] || exit 1
id=$(echo "$INPUT" | sed 's/.*"machine":{"id":"\([^"]*\)".*/\1/')
exec 9>"$LOG.$id"
flock -n 9 || echo "$id" >>"$LOG.second"
sleep 0.0$(($$ % 9))
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    Configure,
    Drain,
}

#[tokio::test]
async fn random_kills_forget_nothing_and_leave_nothing() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = number("BIGFLEET_SEED").unwrap_or(clock.as_nanos() as u64);
    let kills = number("BIGFLEET_HOOK_KILLS").unwrap_or(12);
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut rig = Rig::new().flag("--failed-hold=200ms");
    rig.inventory(&IDS);
    for hook in ["power-on", "install", "drain", "wipe", "status"] {
        rig.hook(hook, ALONE);
    }
    let mut operations = BTreeSet::new();
    rig.start().await;
    for round in 0..kills {
        let churn = Duration::from_millis(random.below(400));
        let acknowledged = churn_for(&mut rig, churn, &mut random, &mut operations).await;
        rig.kill();
        rig.start().await;
        for id in IDS {
            let machine = settled(&mut rig, id).await;
            check(&machine, acknowledged.get(id).copied(), round);
        }
        assert_eq!(rig.blobs(), 0, "round {round}");
        let second = fs::read_to_string(rig.path("log.second")).unwrap_or_default();
        assert_eq!(second, "", "round {round}: two hooks on one machine");
    }
    assert!(!operations.is_empty());
}

/// The last acknowledged call of each machine.
async fn churn_for(
    rig: &mut Rig,
    time: Duration,
    random: &mut Random,
    operations: &mut BTreeSet<String>,
) -> BTreeMap<&'static str, Acknowledged> {
    let mut client = rig.another_client();
    let mut acknowledged = BTreeMap::new();
    let end = tokio::time::Instant::now() + time;
    // Every call is answered: one that is given up may have been accepted.
    while tokio::time::Instant::now() < end {
        let id = IDS[random.below(IDS.len() as u64) as usize];
        let (kind, answer) = match rig.get(id).await.unwrap().state() {
            MachineState::Idle => {
                (Acknowledged::Configure, client.configure(configure(id, "join")).await)
            }
            MachineState::Configured => (Acknowledged::Drain, client.drain(drain(id, 0)).await),
            _ => {
                tokio::time::sleep(Duration::from_millis(2)).await;
                continue;
            }
        };
        let operation = answer.unwrap().into_inner().operation_id;
        assert!(operations.insert(operation), "an operation id came twice");
        acknowledged.insert(id, kind);
    }
    acknowledged
}

/// IDLE, CONFIGURED or FAILED; a repair may go on.
async fn settled(rig: &mut Rig, id: &str) -> Machine {
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let machine = rig.get(id).await.unwrap();
        match machine.state() {
            MachineState::Idle | MachineState::Configured | MachineState::Failed => return machine,
            _ => assert!(tokio::time::Instant::now() < end, "{machine:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn check(machine: &Machine, last: Option<Acknowledged>, round: u64) {
    let sound = match (machine.state(), last) {
        // Done before the kill.
        (MachineState::Configured, Some(Acknowledged::Configure)) => machine.cluster == "c-1",
        // The blob is not kept: it cannot go on. Repaired since, perhaps.
        (MachineState::Failed, Some(Acknowledged::Configure)) => {
            machine.last_error == "configure interrupted by restart"
        }
        (MachineState::Idle, _) => machine.cluster.is_empty(),
        (_, Some(Acknowledged::Drain)) => false,
        (_, None) => true,
        _ => false,
    };
    assert!(sound, "round {round}: {last:?} and then {machine:?}");
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
