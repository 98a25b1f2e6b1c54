//! Any bytes in a provider's store are a record or are refused; what is accepted is a
//! machine that the wire may show, and reads back as it was.

#![no_main]

use bigfleet_model::gate::inventory;
use bigfleet_provider_kit::Record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(record) = Record::decode(bytes) else { return };
    let shown = record.to_wire();
    assert!((0.0..=1.0).contains(&shown.interruption_probability), "{shown:?}");
    inventory::machine(shown).expect("a stored machine passes the gate again");
    let again = Record::decode(&record.encode()).expect("what was encoded is readable");
    assert_eq!(again, record);
});
