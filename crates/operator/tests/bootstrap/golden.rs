//! Every answer of the reference library is ours too (kubernetes chapter §5).

use bigfleet_operator::bootstrap::template::{Template, Value};
use serde_json::Value as Json;

use crate::sample::{data, limits};

/// Split at `\n` only: the cases hold other line ends.
const CASES: &str = include_str!("../data/templates.jsonl");

/// What was said, in the words of the data: a result and where.
fn answer(template: &str, data: &Value) -> (&'static str, String) {
    let named = |at: &str, error: &str| {
        assert!(error.starts_with(&format!("template: bootstrap:{at}: ")), "{error}");
    };
    let template = match Template::parse(template) {
        Ok(template) => template,
        Err(error) => {
            let at = error.line.to_string();
            named(&at, &error.to_string());
            return ("parse_error", at);
        }
    };
    match template.render(data, limits()) {
        Ok(output) => ("output", String::from_utf8(output).expect("cases are text")),
        Err(error) => {
            let at = format!("{}:{}", error.line, error.column);
            named(&at, &error.to_string());
            ("exec_error", at)
        }
    }
}

#[test]
fn operator_inv_14_golden_corpus() {
    let mut count = 0;
    for line in CASES.split('\n').filter(|line| !line.is_empty()) {
        let case: Json = serde_json::from_str(line).expect("a case is JSON");
        let template = case["template"].as_str().expect("a case has a template");
        let expected = match case["output"].as_str() {
            Some(output) => ("output", output),
            None if case["parse_error"] == true => ("parse_error", case["at"].as_str().unwrap()),
            None => ("exec_error", case["at"].as_str().unwrap()),
        };
        let (kind, text) = answer(template, &data(&case["data"]));
        assert_eq!((kind, text.as_str()), expected, "{line}");
        count += 1;
    }
    assert_eq!(count, 176);
}
