//! Data for templates, out of JSON.

use std::{cell::Cell, time::Duration};

use bigfleet_operator::bootstrap::template::{Field, Limits, Template, Value};
use serde_json::Value as Json;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// The limits by a clock that counts how often it is looked at: time is a number
/// of steps, on a busy machine as on a quiet one.
pub(crate) fn limits() -> Limits {
    LOOKS.set(0);
    Limits::by(|| Duration::from_millis(LOOKS.replace(LOOKS.get() + 1)))
}

/// The data of a case. Fields of the token helper are there if the JSON has them.
pub(crate) fn data(json: &Json) -> Value {
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
    let mut fields = vec![
        ("ClusterID", string(&json["ClusterID"])),
        ("Requirements", Field::Ready(requirements)),
        ("MachineID", string(&json["MachineID"])),
    ];
    for name in ["BootstrapToken", "CABundle", "APIServer"] {
        fields.extend(json.get(name).map(|json| (name, string(json))));
    }
    Value::structure("bootstrap.Data", fields)
}

/// The output, or the error as text.
pub(crate) fn rendered(template: &str, data: &Value) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    let output = template.render(data, limits()).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(output).expect("samples are text"))
}

fn string(json: &Json) -> Field {
    Field::Ready(Value::string(json.as_str().unwrap_or_default()))
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}
