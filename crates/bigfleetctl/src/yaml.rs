//! Reading YAML (and JSON, which is YAML) that a person wrote.

use serde::de::DeserializeOwned;

/// A document; what is wrong is told in one line that begins with the place.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        let told = error.to_string();
        let line = told.lines().next().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or(line).to_owned()
    })
}
