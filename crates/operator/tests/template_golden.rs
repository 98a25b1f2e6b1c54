//! Every answer of the reference library is ours too (kubernetes chapter §5).

use std::time::Duration;

use bigfleet_operator::bootstrap::template::{Field, Limits, Template, Value};
use serde_json::Value as Json;

/// Split at `\n` only: the cases hold other line ends.
const CASES: &str = include_str!("data/templates.jsonl");

fn string(json: &Json) -> Field {
    Field::Ready(Value::string(json.as_str().unwrap_or_default()))
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn data(json: &Json) -> Value {
    let requirements = list(&json["Requirements"]).iter().map(|requirement| {
        let values = list(&requirement["Values"]).iter().filter_map(Json::as_str);
        Value::structure(
            "bootstrap.Requirement",
            vec![
                ("Key", string(&requirement["Key"])),
                ("Operator", string(&requirement["Operator"])),
                ("Values", Field::Ready(Value::strings(values))),
            ],
        )
    });
    let requirements = Value::list("[]bootstrap.Requirement", requirements.collect());
    Value::structure(
        "bootstrap.Data",
        vec![
            ("ClusterID", string(&json["ClusterID"])),
            ("Requirements", Field::Ready(requirements)),
            ("MachineID", string(&json["MachineID"])),
        ],
    )
}

/// No case comes near a limit, so none may depend on a clock.
fn limits() -> Limits {
    Limits::by(|| Duration::ZERO)
}

/// What was said, in the words of the data: a result and where.
fn answer(template: &str, data: &Value) -> (&'static str, String) {
    let template = match Template::parse(template) {
        Ok(template) => template,
        Err(error) => {
            let at = error.line.to_string();
            assert!(
                error.to_string().starts_with(&format!("template: bootstrap:{at}: ")),
                "{error}"
            );
            return ("parse_error", at);
        }
    };
    match template.render(data, limits()) {
        Ok(output) => ("output", String::from_utf8(output).expect("cases are text")),
        Err(error) => {
            let at = format!("{}:{}", error.line, error.column);
            assert!(
                error.to_string().starts_with(&format!("template: bootstrap:{at}: ")),
                "{error}"
            );
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
