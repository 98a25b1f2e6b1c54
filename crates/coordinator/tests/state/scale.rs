//! As large as the specification reckons with (§15): it must work, and say how long it
//! took; the numbers that count are measured elsewhere.

use std::time::Instant;

use bigfleet_coordinator::state::{Command, Domain, State};

#[test]
fn a_hundred_thousand_domains_return() {
    let mut state = State::default();
    let mut index = 0;
    let mut apply = |state: &mut State, command: &Command| {
        index += 1;
        state.apply(index, command).expect("valid");
    };
    for number in 0..200 {
        let id = format!("shard-{number:04}").into();
        let (address, shared) = (format!("shard-{number:04}.example:7780"), true);
        let (registered_at, epoch, instance) = (7, 1, number);
        let add = Command::AddShard { id, address, registered_at, epoch, instance, shared };
        apply(&mut state, &add);
    }
    for batch in 0..100 {
        let commands = (0..1_000)
            .map(|number| Command::AssignDomain {
                domain: Domain::new(
                    "topology.kubernetes.io/zone",
                    &format!("zone-{:06}", batch * 1_000 + number),
                ),
                shard: format!("shard-{:04}", number % 200).into(),
            })
            .collect();
        apply(&mut state, &Command::Batch { commands });
    }
    let began = Instant::now();
    let cut = state.clone();
    println!("cut: {:?}", began.elapsed());
    let payload = cut.to_payload();
    println!("written: {:?}, {} bytes", began.elapsed(), payload.len());
    let loaded = State::from_payload(&payload).expect("it was written");
    println!("loaded: {:?}", began.elapsed());
    assert_eq!(loaded, state);
    assert!(
        payload.len() < 14 << 20,
        "{} bytes: the specification reckons with 14 MB",
        payload.len()
    );
    let assignment = state.assignment_of(&"shard-0007".into(), "");
    assert_eq!(assignment.domains.len(), 500);
}
