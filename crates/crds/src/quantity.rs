//! Quantities as the API server carries them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// What the API server admits; Kubernetes' own pattern.
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The text of a quantity, as written; an integer reads as its decimal digits.
///
/// It is not parsed here: what does not parse must still be readable, so that
/// only the object that holds it is skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Quantity(String);

impl Quantity {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Quantity {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrString)
    }
}

struct IntOrString;

impl Visitor<'_> for IntOrString {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity, as an integer or a string")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Quantity, E> {
        Ok(text.into())
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_integers_and_strings_and_keeps_the_text() {
        for (json, text) in [
            ("4", "4"),
            ("-5", "-5"),
            ("18446744073709551615", "18446744073709551615"),
            (r#""500m""#, "500m"),
            (r#""1.50Gi""#, "1.50Gi"),
            (r#""not a quantity""#, "not a quantity"),
        ] {
            let quantity: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(quantity.as_str(), text);
            assert_eq!(serde_json::to_value(&quantity).unwrap(), text, "written as a string");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for json in ["1.5", "true", "null", "{}", "[]"] {
            let error = serde_json::from_str::<Quantity>(json).unwrap_err().to_string();
            assert!(error.contains("integer or a string"), "{json}: {error}");
        }
    }
}
