//! Any bytes are a template or are refused; what parses renders or fails, within
//! its limits, the same way twice.
//!
//! The template engine is compiled into the target: the operator's crate would
//! bring a Kubernetes client along.

#![no_main]

#[path = "../../crates/operator/src/bootstrap/template/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod template;

use std::{cell::Cell, sync::LazyLock, time::Duration};

use libfuzzer_sys::fuzz_target;
use template::{Field, Limits, Template, Value};

/// The templates of the reference library's corpus.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    include_str!("../../crates/operator/tests/data/templates.jsonl")
        .split('\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let case: serde_json::Value = serde_json::from_str(line).expect("a case is JSON");
            case["template"].as_str().expect("a case has a template").as_bytes().to_vec()
        })
        .collect()
});

/// Pieces that bytes are spelt with when they are to make a template.
const PIECES: &[&str] = &[
    "{{", "}}", "{{- ", " -}}", " ", "\n", "text", "if ", "else", "else if ", "end", "with ",
    "range ", "break", "continue", "define \"a\"", "template \"a\" ", "block \"b\" ", "$x", "$x := ",
    "$x, $y := ", "$x = ", ".", ".ClusterID", ".Requirements", ".Values", ".Key", "$", "(", ")",
    " | ", "nil", "true", "0", "1", "-3", "1.5", "1e308", "0x1p-1074", "9223372036854775807", "'a'",
    "\"s\"", "\"\\xff\"", "`raw`", "and ", "or ", "not ", "len ", "index ", "slice ", "print ",
    "printf ", "println ", "html ", "js ", "urlquery ", "call ", "eq ", "ne ", "lt ", "ge ",
    "\"%v %#v %+v\" ", "\"%s|%q|%x\" ", "\"%d %5.3d %+d\" ", "\"%e %g %.3f %b\" ", "\"%*.*f\" ",
    "\"%[2]d %[1]s\" ", "\"%999999d\" ", "\"%.999999f\" ", "\"%[\" ", "\"%T%c%U%t%o\" ", "/*", "*/",
];

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// A clock that counts how often it is looked at.
fn clock() -> Duration {
    Duration::from_millis(LOOKS.replace(LOOKS.get() + 1))
}

fn data() -> Value {
    let ready = Field::Ready;
    let requirement = |key: &str, operator: &str, values: &[&str]| {
        Value::structure(
            "Requirement",
            vec![
                ("Key", ready(Value::string(key))),
                ("Operator", ready(Value::string(operator))),
                ("Values", ready(Value::strings(values.iter().copied()))),
            ],
        )
    };
    let requirements = vec![
        requirement("zone", "In", &["a", "b"]),
        requirement("gpu", "Exists", &[]),
        requirement("größe", "Same", &["x"]),
    ];
    Value::structure(
        "Data",
        vec![
            ("ClusterID", ready(Value::string("prod-eu-1"))),
            ("Requirements", ready(Value::list("[]Requirement", requirements))),
            ("MachineID", ready(Value::string("m-0042"))),
        ],
    )
}

fn source(bytes: &[u8]) -> Vec<u8> {
    let [mode, rest @ ..] = bytes else { return Vec::new() };
    match mode % 4 {
        0 => rest.to_vec(),
        1 => {
            let piece = |byte: &u8| PIECES[usize::from(*byte) % PIECES.len()].as_bytes();
            rest.iter().flat_map(piece).copied().collect()
        }
        2 => {
            let pieces = rest.iter().flat_map(|byte| {
                let piece = PIECES[usize::from(*byte) % PIECES.len()];
                ["{{ ", piece, " }}"].concat().into_bytes()
            });
            pieces.collect()
        }
        // A piece of one seed, foreign bytes, a piece of another.
        _ => {
            let [a, b, cut, foreign @ ..] = rest else { return Vec::new() };
            let seed = |byte: u8| &SEEDS[usize::from(byte) % SEEDS.len()];
            let half = |seed: &[u8]| seed.len() * usize::from(*cut) / 255;
            let (first, second) = (seed(*a), seed(*b));
            [&first[..half(first)], foreign, &second[half(second)..]].concat()
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let source = source(bytes);
    let lines = source.split(|&byte| byte == b'\n').count();
    let template = match Template::parse(source.clone()) {
        Ok(template) => template,
        Err(error) => {
            assert!((1..=lines).contains(&error.line), "{error} in {lines} lines");
            return;
        }
    };
    let data = data();
    let limits = Limits { output: 1 << 16, ..Limits::by(clock) };
    LOOKS.set(0);
    let rendered = template.render(&data, limits);
    match &rendered {
        Ok(output) => {
            assert!(output.len() <= limits.output);
            if !source.windows(2).any(|two| two == b"{{") {
                assert_eq!(*output, source, "text stays as it is");
            }
        }
        Err(error) => {
            let line = source.split(|&byte| byte == b'\n').nth(error.line - 1);
            assert!(error.column <= line.expect("the line is there").len(), "{error}");
        }
    }
    LOOKS.set(0);
    assert_eq!(template.render(&data, limits), rendered);
});
