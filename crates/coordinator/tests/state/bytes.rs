//! Foreign bytes are refused or mean one thing; they never panic.

use bigfleet_coordinator::state::{Command, State};

use crate::{
    draw::{Random, command},
    seeds,
};

/// Flips, cuts, doubles or swaps some of the bytes.
fn damage(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let to = (at + random.below(12) as usize).min(bytes.len());
        match random.below(4) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..to)),
            2 => bytes[at] = b"0123456789\"{}[],:abz-"[random.below(21) as usize],
            _ => {
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

#[test]
fn damaged_commands_are_refused_or_canonical() {
    let mut accepted = 0;
    for seed in seeds(200) {
        println!("seed {seed}");
        let mut random = Random::new(seed ^ 0xc0de);
        let state = State::default();
        for _ in 0..100 {
            let entry = command(&mut random, &state);
            let bytes = damage(&mut random, &entry.encode());
            if let Ok(read) = Command::decode(&bytes) {
                accepted += 1;
                assert_eq!(read.encode(), bytes, "seed {seed}");
            }
        }
    }
    assert!(accepted > 0, "some damage is another command");
}

#[test]
fn damaged_payloads_are_refused_or_a_state() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in seeds(60) {
        println!("seed {seed}");
        let mut random = Random::new(seed ^ 0xbad);
        let mut state = State::default();
        for index in 1..=150 {
            let entry = command(&mut random, &state);
            let _ = state.apply(index, &entry);
        }
        let payload = state.to_payload();
        for _ in 0..60 {
            match State::from_payload(&damage(&mut random, &payload)) {
                Ok(loaded) => {
                    accepted += 1;
                    let again = State::from_payload(&loaded.to_payload());
                    assert_eq!(
                        again.expect("what was loaded can be written"),
                        loaded,
                        "seed {seed}"
                    );
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} {refused}");
}
