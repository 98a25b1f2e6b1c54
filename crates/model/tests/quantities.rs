//! The Kubernetes libraries' own answers about quantities (wire chapter §13).

use bigfleet_model::{Quantity, QuantitySum};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    r#in: String,
    ok: bool,
    pattern: bool,
    #[serde(default)]
    too_big: bool,
    canonical: Option<String>,
    milli_ceil: Option<i64>,
    milli_ceil_big: Option<String>,
    as_f64: Option<f64>,
}

#[test]
fn every_answer_of_the_library_holds() {
    let mut cases = 0;
    for line in include_str!("golden/quantities.jsonl").split('\n').filter(|l| !l.is_empty()) {
        let case: Case = serde_json::from_str(line).unwrap();
        cases += 1;
        let parsed = case.r#in.parse::<Quantity>();
        // Without a digit the library reads 0; we refuse. Past i128 nano-units too.
        if !(case.ok && case.pattern) || case.too_big {
            assert!(parsed.is_err(), "must not parse: {line}");
            continue;
        }
        let quantity = parsed.unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Some(canonical) = case.canonical {
            let exponent = canonical.contains(['e']);
            if exponent {
                let value: Quantity = canonical.parse().unwrap();
                assert_eq!(quantity, value, "{line}");
            } else {
                assert_eq!(quantity.to_string(), canonical, "{line}");
            }
        }
        if let Some(millis) = case.milli_ceil {
            assert_eq!(quantity.millis_ceil(), millis.into(), "{line}");
        }
        if let Some(millis) = case.milli_ceil_big {
            assert_eq!(quantity.millis_ceil().to_string(), millis, "{line}");
        }
        assert_eq!(Some(quantity.to_f64()), case.as_f64, "{line}");
    }
    assert_eq!(cases, 350);
}

#[test]
fn digits_are_never_dropped() {
    assert_eq!("1000E".parse::<Quantity>().unwrap().to_string(), "1000E");
}

#[derive(Deserialize)]
struct Sum {
    r#in: Vec<String>,
    by_rule: String,
}

#[test]
fn sums_print_by_the_rule_in_any_order() {
    let mut cases = 0;
    for line in include_str!("golden/quantity-sums.jsonl").split('\n').filter(|l| !l.is_empty()) {
        let case: Sum = serde_json::from_str(line).unwrap();
        cases += 1;
        let addends: Vec<Quantity> = case.r#in.iter().map(|text| text.parse().unwrap()).collect();
        for rotation in 0..addends.len() {
            let rotated = addends[rotation..].iter().chain(&addends[..rotation]).copied();
            let total = rotated.collect::<QuantitySum>().total();
            assert_eq!(total.to_string(), case.by_rule, "rotated by {rotation}: {line}");
        }
    }
    assert_eq!(cases, 70);
}

#[test]
fn a_decimal_addend_is_remembered_when_others_cancel_it() {
    let addends = ["1", "-1", "1Ki"].map(|text| text.parse::<Quantity>().unwrap());
    for order in [[0, 1, 2], [2, 0, 1], [0, 2, 1]] {
        let sum: QuantitySum = order.iter().map(|at| addends[*at]).collect();
        assert_eq!(sum.total().to_string(), "1024");
    }
}

#[test]
fn a_sum_past_the_end_of_binary_suffixes_reads_back_as_it_is() {
    let sum: QuantitySum =
        ["4Ei", "4Ei"].map(|text| text.parse::<Quantity>().unwrap()).into_iter().collect();
    let text = sum.total().to_string();
    assert_eq!(text, "9223372036854775808");
    assert_eq!(text.parse::<Quantity>().unwrap(), sum.total());
}

#[test]
fn the_ends_of_the_range_are_exact() {
    let max = i128::MAX.to_string() + "n";
    assert_eq!(max.parse::<Quantity>().unwrap().nanos(), i128::MAX);
    assert_eq!("99999999999e18".parse::<Quantity>().unwrap().to_string(), "99999999999E");
    let past = "170141183460469231731687303715884105728n";
    let too_large = [past, "999999999999999999E", "999999999999e18", "1e30", "-1e30"];
    let long = [format!("-{past}"), "9".repeat(39), "9".repeat(1_000_000)];
    for text in too_large.into_iter().chain(long.iter().map(String::as_str)) {
        assert!(text.parse::<Quantity>().is_err(), "{}", &text[..text.len().min(20)]);
    }
}

#[test]
fn both_ends_of_the_range_round_to_milli_units() {
    let millis = 170_141_183_460_469_231_731_687_303_715_884;
    for (sign, floor, ceil) in [("", millis, millis + 1), ("-", -millis - 1, -millis)] {
        let text = format!("{sign}{}n", i128::MAX);
        let end: Quantity = text.parse().unwrap();
        assert_eq!((end.millis_floor(), end.millis_ceil()), (floor, ceil), "{text}");
    }
}

#[test]
fn hostile_text_costs_nothing() {
    let zeros = "0".repeat(1_000_000);
    for (text, nanos) in [
        ("1e-9223372036854775808".to_owned(), 1),
        ("-1e-9223372036854775808".to_owned(), -1),
        ("0e9223372036854775807".to_owned(), 0),
        (format!("0.{zeros}"), 0),
        (format!("0.{zeros}1"), 1),
        (format!("{zeros}1"), 1_000_000_000),
        (format!("0.{zeros}1e1000000"), 100_000_000),
        (format!("0.{zeros}1Ki"), 1),
        (format!("1{zeros}e-1000000"), 1_000_000_000),
    ] {
        let head: String = text.chars().take(20).collect();
        assert_eq!(text.parse::<Quantity>().map(Quantity::nanos), Ok(nanos), "{head}");
    }
    // The second exponent is 2^32 short of what a narrowing cast would read as 0.
    for text in ["1e9223372036854775807", "1e4294967287", "1e9223372036854775808"] {
        assert!(text.parse::<Quantity>().is_err(), "{text}");
    }
    let nines = "9".repeat(1_000_000) + "Ei";
    assert_eq!(nines.parse::<Quantity>().unwrap().to_string(), "9223372036854775807");
}

#[test]
fn binary_suffixes_begin_at_1024_and_end_at_2_to_the_63() {
    for (text, canonical) in [
        ("0.9765625Ki", "1k"),
        ("0.9990234375Ki", "1023"),
        ("1Ki", "1Ki"),
        ("7.999999999999999999999999Ei", "9223372036854775807"),
        ("-7.999999999999999999999999Ei", "-9223372036854775807"),
    ] {
        assert_eq!(text.parse::<Quantity>().unwrap().to_string(), canonical, "{text}");
    }
}
