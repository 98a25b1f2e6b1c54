//! Any text is a world or is refused with a place in it; what is read is decided
//! without a panic.

#![no_main]

use bigfleet_engine::{decide, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A few bytes can ask for millions of machines; that is not what is tested.
    if text.contains("count") {
        return;
    }
    match json::read_world(text) {
        Ok(world) => {
            let output = decide(&world);
            let printed = json::print_output(&output, true);
            assert!(printed.ends_with("}\n"));
        }
        Err(error) => {
            let lines = text.split('\n').count();
            assert!(error.line <= lines, "{error} in {lines} lines");
        }
    }
});
