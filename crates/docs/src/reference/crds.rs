//! The three kinds, field by field.

use std::{fmt::Write as _, path::PathBuf};

use serde_json::Value;

use super::cell;
use crate::{Error, GENERATE, read};

/// In the order of demand.
const KINDS: [&str; 3] = ["capacityrequests", "upcomingnodes", "availablecapacities"];

/// The page.
pub(super) fn page() -> Result<String, Error> {
    let mut page = format!(
        "# CRD reference\n\nThe three kinds of the group `bigfleet.lucy.sh`, from `api/crd`. Generated; write it \
         anew with `{GENERATE}`. What they mean is in the [wire chapter](../spec/wire.md) §13.\n\n\
         `kubectl get fleet --all-namespaces` shows all three.\n"
    );
    for kind in KINDS {
        let path = PathBuf::from(format!("api/crd/bigfleet.lucy.sh_{kind}.yaml"));
        let manifest: Value = serde_saphyr::from_str(&read(&path)?)
            .map_err(|error| Error::Manifest { path: path.clone(), problem: error.to_string() })?;
        definition(&mut page, &manifest["spec"])
            .ok_or_else(|| Error::Manifest { path, problem: "no version with a schema".into() })?;
    }
    Ok(page)
}

fn definition(page: &mut String, spec: &Value) -> Option<()> {
    let version = spec["versions"].get(0)?;
    let schema = version.pointer("/schema/openAPIV3Schema")?;
    let names = &spec["names"];
    let short: Vec<String> = texts(&names["shortNames"]).map(|name| format!("`{name}`")).collect();
    let _ = write!(
        page,
        "\n## {}\n\n{}\n\n{}, `{}/{}`. Names for kubectl: `{}`, {}.\n",
        names["kind"].as_str()?,
        cell(schema["description"].as_str().unwrap_or_default()),
        spec["scope"].as_str()?,
        spec["group"].as_str()?,
        version["name"].as_str()?,
        names["plural"].as_str()?,
        short.join(", ")
    );
    page.push_str("\n| Field | Type | |\n|---|---|---|\n");
    fields(page, schema, "");
    rules(page, schema);
    page.push_str("\n| Column | From | Shown |\n|---|---|---|\n");
    for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
        let wide = column["priority"].as_i64().unwrap_or(0) > 0;
        let _ = writeln!(
            page,
            "| {} | `{}` | {} |",
            column["name"].as_str()?,
            cell(column["jsonPath"].as_str()?),
            if wide { "with `-o wide`" } else { "always" }
        );
    }
    Some(())
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn fields(page: &mut String, schema: &Value, within: &str) {
    let required: Vec<&str> = texts(&schema["required"]).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if within.is_empty() { name.clone() } else { format!("{within}.{name}") };
        let mut said = cell(field["description"].as_str().unwrap_or_default());
        if required.contains(&name.as_str()) {
            said.push_str(" **Required.**");
        }
        let choices: Vec<String> = texts(&field["enum"]).map(|one| format!("`{one}`")).collect();
        if !choices.is_empty() {
            let _ = write!(said, " One of {}.", choices.join(", "));
        }
        if let Some(default) = field.get("default") {
            let _ = write!(said, " Default: `{default}`.");
        }
        let _ = writeln!(page, "| `{path}` | {} | {} |", kind(field), said.trim());
        fields(page, field, &path);
        if let Some(items) = field.get("items") {
            fields(page, items, &format!("{path}[]"));
        }
    }
}

fn kind(field: &Value) -> String {
    let plain = field["type"].as_str().unwrap_or("quantity");
    if field["x-kubernetes-int-or-string"] == true {
        return "quantity".to_owned();
    }
    let format = field["format"].as_str().map(|format| format!(" ({format})")).unwrap_or_default();
    match (plain, field.get("items"), field.get("additionalProperties")) {
        ("array", Some(items), _) => format!("list of {}", kind(items)),
        ("object", _, Some(values)) if values.is_object() => format!("map to {}", kind(values)),
        (plain, ..) => format!("{plain}{format}"),
    }
}

/// What the API server refuses besides.
fn rules(page: &mut String, schema: &Value) {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    if !found.is_empty() {
        page.push_str("\nRefused by the API server unless:\n\n");
    }
    for (path, message) in found {
        let _ = writeln!(page, "- `{path}`: {message}");
    }
}

fn collect(schema: &Value, path: &str, found: &mut Vec<(String, String)>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let said = rule["message"].as_str().or_else(|| rule["rule"].as_str()).unwrap_or_default();
        found.push((path.to_owned(), cell(said)));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect(field, &path, found);
        if let Some(items) = field.get("items") {
            collect(items, &format!("{path}[]"), found);
        }
    }
}
