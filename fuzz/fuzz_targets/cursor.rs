//! Any bytes are a place in the history or the full list; and whichever place it is,
//! reading on in pages from there tells every later change once, in order.

#![no_main]

use bigfleet_model::MachineId;
use bigfleet_provider::protocol::{Cursor, RevIndex};
use libfuzzer_sys::fuzz_target;

const LIFE: u64 = 0x5f3a_0000_0000_0001;

fuzz_target!(|input: (u8, u8, u8, Vec<u8>)| {
    let (machines, changes, cap, bytes) = input;
    let mut index = RevIndex::new(LIFE, 0);
    let names: Vec<MachineId> = (0..=machines % 16).map(|n| n.to_string().into()).collect();
    for change in 0..changes {
        index.bump(&names[usize::from(change) % names.len()]);
    }
    // The number alone, too: few random bytes have our life in front.
    let number = bytes.iter().fold(0_u64, |sum, byte| (sum << 3) ^ u64::from(*byte));
    let number = number % (2 * index.head() + 2);
    for cursor in [bytes, index.cursor(number).to_string().into_bytes()] {
        let after = index.resolve(&cursor);
        assert!(after <= index.head());
        match Cursor::parse(&cursor) {
            Ok(parsed) => {
                assert_eq!(parsed.to_string().as_bytes(), cursor);
                let ours = parsed.store_life == LIFE && parsed.revision <= index.head();
                assert_eq!(after, if ours { parsed.revision } else { 0 });
            }
            Err(_) => assert_eq!(after, 0),
        }
        let whole: Vec<_> = index.since(after).map(|(_, machine)| machine.clone()).collect();
        let (mut paged, mut place) = (Vec::new(), cursor);
        let cap = usize::from(cap % 8) + 1;
        loop {
            let page = index.page(&place, cap, |_| true);
            assert!(page.machines.len() <= cap);
            let end = page.machines.is_empty();
            paged.extend(page.machines);
            if end {
                break;
            }
            place = page.cursor.to_string().into_bytes();
        }
        assert_eq!(paged, whole);
    }
});
