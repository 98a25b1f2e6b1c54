//! Documents, with errors that name the place.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

/// YAML, and so JSON too. The way over a value costs the line, but tells the path.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let value: Value =
        serde_saphyr::from_str(text).map_err(|error| Error::Syntax(error.to_string()))?;
    from_value(value)
}

pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner().to_string();
        // The document itself has no path.
        if path == "." { Error::Syntax(problem) } else { Error::field(path, problem) }
    })
}
