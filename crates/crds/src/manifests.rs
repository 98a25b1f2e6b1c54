//! The definitions as YAML, for `api/crd`.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::FoldStr;

use crate::{GROUP, available_capacity_crd, capacity_request_crd, upcoming_node_crd};

/// The command that writes the manifests.
pub const GENERATE: &str = "cargo run -p bigfleet-crds --example manifests";

/// One file of `api/crd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the file.
    pub file_name: String,
    /// The whole content.
    pub yaml: String,
}

/// A definition could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file_name}: {source}")]
pub struct Error {
    file_name: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// All manifests; equal types give equal bytes.
pub fn manifests() -> Result<Vec<Manifest>, Error> {
    [capacity_request_crd(), available_capacity_crd(), upcoming_node_crd()]
        .iter()
        .map(manifest)
        .collect()
}

fn manifest(crd: &CustomResourceDefinition) -> Result<Manifest, Error> {
    let file_name = format!("{GROUP}_{}.yaml", crd.spec.names.plural);
    match body(crd) {
        Ok(body) => Ok(Manifest {
            file_name,
            yaml: format!("# Generated from crates/crds; do not edit.\n# {GENERATE}\n---\n{body}"),
        }),
        Err(source) => Err(Error { file_name, source }),
    }
}

fn body(
    crd: &CustomResourceDefinition,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let value = serde_json::to_value(crd)?;
    let yaml = serde_saphyr::to_string(&Readable(&value))?;
    // The serializer's folded style would end each text with a line break.
    Ok(yaml.replace(": >\n", ": >-\n"))
}

/// A value written for readers: keys sorted, long texts folded, whole numbers without a fraction.
struct Readable<'a>(&'a Value);

/// Longest text that is written on one line.
const LINE_MAX: usize = 80;

impl Serialize for Readable<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => {
                // Sorted here, since serde_json keeps another order with one of its features.
                let sorted: BTreeMap<_, _> = map.iter().map(|(k, v)| (k, Readable(v))).collect();
                serializer.collect_map(sorted)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Readable)),
            Value::String(text) if text.len() > LINE_MAX && text.contains(' ') => {
                FoldStr(text).serialize(serializer)
            }
            // Bounds are floats in the API's types.
            Value::Number(number) => match number.as_f64() {
                Some(whole) if number.is_f64() && whole.fract() == 0.0 => {
                    serializer.serialize_i64(whole as i64)
                }
                _ => number.serialize(serializer),
            },
            other => other.serialize(serializer),
        }
    }
}
