//! `--priority-class-defaults`: penalties by priority class.

use std::{collections::HashMap, fmt, fs, path::Path};

use bigfleet_model::Quantity;
use serde::{Deserialize, Deserializer, de::Visitor};

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not there, or not ours to read.
    #[error("--priority-class-defaults: cannot read {path}: {source}; give a file that exists")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Not of the form.
    #[error(
        "--priority-class-defaults: {path}: {problem}; write for example \
         {{production: {{interruptionPenalty: 8192, reclamationPenalty: 500m}}}}"
    )]
    Invalid {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

/// Defaults of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClassDefault {
    /// Dollars per interruption.
    #[serde(rename = "interruptionPenalty", default, deserialize_with = "quantity")]
    pub interruption: Option<Quantity>,
    /// Dollars per loss of the machine.
    #[serde(rename = "reclamationPenalty", default, deserialize_with = "quantity")]
    pub reclamation: Option<Quantity>,
}

/// Defaults by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassDefaults(HashMap<String, ClassDefault>);

impl ClassDefaults {
    /// From a file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|source| Error::Unreadable { path: name(), source })?;
        Self::parse(&text).map_err(|problem| Error::Invalid { path: name(), problem })
    }

    /// From YAML; nothing at all is no defaults.
    pub fn parse(yaml: &str) -> Result<Self, String> {
        let read: Option<HashMap<String, Option<ClassDefault>>> =
            serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        let classes = read.unwrap_or_default().into_iter();
        Ok(Self(classes.map(|(name, class)| (name, class.unwrap_or_default())).collect()))
    }

    /// Those of a class.
    #[must_use]
    pub fn get(&self, class: &str) -> Option<&ClassDefault> {
        self.0.get(class)
    }
}

fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Quantity>, D::Error> {
    deserializer.deserialize_any(TextOrNumber)
}

struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = Option<Quantity>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dollars as a quantity, for example 8192 or \"500m\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let quantity: Result<Quantity, _> = text.parse();
        quantity.map(Some).map_err(|error| E::custom(format!("{text:?}: {error}")))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(text: &str) -> Option<Quantity> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn quantities_are_strings_or_numbers() {
        let read = ClassDefaults::parse(
            "a: {interruptionPenalty: 8192, reclamationPenalty: 0.5}\n\
             b: {interruptionPenalty: \"1k\"}\nc: {}\nd:\n",
        )
        .unwrap();
        let expected = ClassDefault { interruption: dollars("8192"), reclamation: dollars("500m") };
        assert_eq!(read.get("a"), Some(&expected));
        let expected = ClassDefault { interruption: dollars("1k"), reclamation: None };
        assert_eq!(read.get("b"), Some(&expected));
        assert_eq!(read.get("c"), Some(&ClassDefault::default()));
        assert_eq!(read.get("d"), Some(&ClassDefault::default()));
        assert_eq!(read.get("e"), None);
        assert_eq!(ClassDefaults::parse(""), Ok(ClassDefaults::default()));
        assert_eq!(ClassDefaults::parse("{}"), Ok(ClassDefaults::default()));
    }

    #[test]
    fn anything_else_is_refused() {
        for yaml in [
            "a: 5",
            "- a",
            "a: {interruptionPenalty: $5}",
            "a: {interruptionPenalty: true}",
            "a: {interruptionPenalty: .inf}",
            "a: {penalty: 5}",
            "a: {interruptionPenalty: [1]}",
            "a: {",
        ] {
            assert!(ClassDefaults::parse(yaml).is_err(), "{yaml}");
        }
    }

    #[test]
    fn an_absent_file_is_named() {
        let error = ClassDefaults::load(Path::new("/nowhere.yaml")).unwrap_err().to_string();
        assert!(error.contains("--priority-class-defaults: cannot read /nowhere.yaml"), "{error}");
    }
}
