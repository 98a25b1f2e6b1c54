//! Rules that hold for every template.

use std::fmt::Write as _;

use bigfleet_operator::bootstrap::template::{Template, Value};
use proptest::prelude::*;

use crate::sample::{data, limits, rendered};

fn sample() -> Value {
    data(&serde_json::json!({
        "ClusterID": "prod-eu-1",
        "Requirements": [{"Key": "zone", "Operator": "In", "Values": ["a", "b"]}],
        "MachineID": "m-0042",
    }))
}

/// Pieces that make nearly a template.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{{",
        "}}",
        "{{- ",
        " -}}",
        "if ",
        "else ",
        "end",
        "range ",
        "with ",
        "define \"a\"",
        "template \"a\" ",
        "block \"a\" ",
        "break",
        "$x",
        ":=",
        "=",
        ",",
        ".",
        ".ClusterID",
        ".Requirements",
        "(",
        ")",
        "|",
        " ",
        "\n",
        "\"",
        "`",
        "'",
        "\\",
        "printf \"%*.[1]*f\" ",
        "index ",
        "slice ",
        "and ",
        "1",
        "-",
        "0x",
        "1e400",
        "nil",
        "/*",
        "*/",
        "é",
        "\u{0}",
        "%",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn operator_inv_14_no_bytes_panic(source in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(template) = Template::parse(source) {
            let _ = template.render(&sample(), limits());
        }
    }

    #[test]
    fn operator_inv_14_no_pieces_panic(source in pieces()) {
        if let Ok(template) = Template::parse(source) {
            let _ = template.render(&sample(), limits());
        }
    }

    #[test]
    fn text_without_actions_is_its_own_rendering(text in "[^{]{0,200}") {
        prop_assert_eq!(rendered(&text, &sample()), Ok(text));
    }

    /// Trim markers eat space, tab, CR and LF on their own side, and nothing else.
    #[test]
    fn trim_markers_eat_their_side(
        before in "[ab \t\r\n\u{a0}\u{b}]{0,9}",
        after in "[ab \t\r\n\u{a0}\u{b}]{0,9}",
        left: bool,
        right: bool,
    ) {
        let spaces = [' ', '\t', '\r', '\n'];
        let open = if left { "{{- " } else { "{{ " };
        let close = if right { " -}}" } else { " }}" };
        let kept_before = if left { before.trim_end_matches(spaces) } else { &before };
        let kept_after = if right { after.trim_start_matches(spaces) } else { &after };
        let expected = format!("{kept_before}prod-eu-1{kept_after}");
        let source = format!("{before}{open}.ClusterID{close}{after}");
        prop_assert_eq!(rendered(&source, &sample()), Ok(expected));
        let open = if left { "{{- " } else { "{{" };
        let close = if right { " -}}" } else { "}}" };
        let comment = format!("{before}{open}/* */{close}{after}");
        prop_assert_eq!(rendered(&comment, &sample()), Ok(format!("{kept_before}{kept_after}")));
    }

    /// What `%q` writes is a literal of the language that means the same.
    #[test]
    fn quoting_round_trips(text in any::<String>()) {
        let quoted = |verb: &str, text: &str| {
            let mut literal = String::from("\"");
            for char in text.chars() {
                write!(literal, "\\U{:08x}", u32::from(char)).unwrap();
            }
            rendered(&format!("{{{{ printf \"{verb}\" {literal}\" }}}}"), &sample())
        };
        for verb in ["%q", "%+q", "%#v"] {
            let literal = quoted(verb, &text).unwrap();
            let read = rendered(&format!("{{{{ {literal} }}}}"), &sample());
            prop_assert_eq!(read, Ok(text.clone()), "{}", literal);
        }
    }

    /// Whole numbers print as another implementation prints them, and read back.
    #[test]
    fn integers_print_and_read_back(value: i64, width in 0_usize..30, precise in 0_usize..30) {
        let show = |verb: &str| {
            rendered(&format!("{{{{ printf \"{verb}\" {value} }}}}"), &sample()).unwrap()
        };
        prop_assert_eq!(show("%d"), value.to_string());
        prop_assert_eq!(show("%+d"), format!("{value:+}"));
        prop_assert_eq!(show(&format!("%{width}d")), format!("{value:width$}"));
        prop_assert_eq!(show(&format!("%-{width}d")), format!("{value:<width$}"));
        prop_assert_eq!(show(&format!("%0{width}d")), format!("{value:0width$}"));
        let sign = if value < 0 { "-" } else { "" };
        let magnitude = value.unsigned_abs();
        prop_assert_eq!(show("%x"), format!("{sign}{magnitude:x}"));
        prop_assert_eq!(show("%#b"), format!("{sign}0b{magnitude:b}"));
        prop_assert_eq!(show("%o"), format!("{sign}{magnitude:o}"));
        if value != 0 || precise > 0 {
            prop_assert_eq!(show(&format!("%.{precise}d")), format!("{sign}{magnitude:0precise$}"));
        }
    }

    /// A float prints with as few digits as read back the same.
    #[test]
    fn floats_print_and_read_back(value in any::<f64>().prop_filter("a number", |v| v.is_finite())) {
        let literal = format!("{value:e}");
        for verb in ["%v", "%g", "%x"] {
            let shown = rendered(&format!("{{{{ printf \"{verb}\" {literal} }}}}"), &sample()).unwrap();
            // A number without a point would be read as a whole one.
            let again = if shown.contains(['.', 'e', 'p']) { shown.clone() } else { format!("{shown}.0") };
            let read = rendered(&format!("{{{{ printf \"%b\" {again} }}}}"), &sample());
            let expected = rendered(&format!("{{{{ printf \"%b\" {literal} }}}}"), &sample());
            prop_assert_eq!(read, expected, "{} of {}", shown, literal);
        }
        let fixed = rendered(&format!("{{{{ printf \"%.3f\" {literal} }}}}"), &sample());
        prop_assert_eq!(fixed, Ok(format!("{value:.3}")));
    }
}
