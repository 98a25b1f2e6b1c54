//! Any log on three replicas, with snapshots at random points, gives the same bytes.

use bigfleet_coordinator::state::{Command, State};
use bigfleet_model::FleetId;

use crate::{
    draw::{Random, command},
    seeds,
};

#[test]
fn three_replicas_are_byte_identical() {
    let mut refused = 0;
    for seed in seeds(200) {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut first = State::default();
        if random.chance(30) {
            first.begin_recovery(&FleetId::new("u", 7), 1_700_000_000_000);
        }
        let mut others = [first.clone(), first.clone()];
        for index in 1..=200 {
            let entry = command(&mut random, &first);
            let wanted = first.apply(index, &entry);
            refused += u64::from(wanted.is_err());
            for (number, other) in others.iter_mut().enumerate() {
                // One reads the log, the other is sent the command.
                let read = Command::decode(&entry.encode()).expect("it was written");
                let applied = if number == 0 { &read } else { &entry };
                assert_eq!(other.apply(index, applied), wanted, "seed {seed} index {index}");
                if random.chance(5) {
                    // A restart, or a replica that is sent a snapshot.
                    let payload = other.to_payload();
                    let loaded = State::from_payload(&payload);
                    *other = loaded.unwrap_or_else(|error| {
                        panic!("seed {seed} index {index}: {error}: {}", show(&payload))
                    });
                }
            }
        }
        for other in &others {
            assert_eq!(show(&other.to_payload()), show(&first.to_payload()), "seed {seed}");
            assert_eq!(*other, first, "seed {seed}: indexes are derived the same");
        }
    }
    assert!(refused > 0, "both outcomes are seen");
}

fn show(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload).into_owned()
}
