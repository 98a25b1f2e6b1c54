//! How `bigfleetctl` finds the fleet: a configuration file in the demo's directory.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{Error, pki::Material};

/// Writes the file. Who looks does it with a certificate that may only look; `admin` is for the
/// brake.
pub(crate) fn write(
    directory: &Path,
    replicas: &[String],
    reader: &Material,
    admin: &Material,
) -> Result<PathBuf, Error> {
    let context = |material: &Material| {
        let [cert, key, ca] = material.paths();
        json!({"coordinator": replicas, "tls": {"cert": cert, "key": key, "ca": ca}})
    };
    let config = json!({
        "currentContext": "demo",
        "contexts": {"demo": context(reader), "admin": context(admin)},
    });
    let path = directory.join("config.yaml");
    // JSON is YAML, and no path needs quotes of another kind in it.
    std::fs::write(&path, format!("{config:#}\n")).map_err(Error::file(&path))?;
    Ok(path)
}
