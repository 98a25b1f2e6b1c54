//! Any text parses or is refused; what parses prints, and reads back the same.

#![no_main]

use bigfleet_model::Quantity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(quantity) = text.parse::<Quantity>() else { return };
    assert!(text.bytes().any(|byte| byte.is_ascii_digit()), "read {quantity} from no digit");
    assert!(quantity.millis_floor() <= quantity.millis_ceil());
    assert!(quantity.to_f64().is_finite());
    let printed = quantity.to_string();
    let again: Quantity = printed.parse().expect("what we print parses");
    assert_eq!(again, quantity, "{text} printed as {printed}");
    assert_eq!(again.to_string(), printed);
});
