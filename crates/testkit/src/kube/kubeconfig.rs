//! The file that tells clients where the server is and who they are.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Error;
use super::certificates::Certificates;

/// Writes the admin's kubeconfig. It is JSON, which is YAML too.
pub(crate) fn write_to(folder: &Path, port: u16, files: &Certificates) -> Result<PathBuf, Error> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "clusters": [{
            "name": "test",
            "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": files.authority,
            },
        }],
        "users": [{
            "name": "admin",
            "user": {
                "client-certificate": files.admin.certificate,
                "client-key": files.admin.key,
            },
        }],
    });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, config.to_string())
        .map_err(Error::io(format!("cannot write {}", path.display())))?;
    Ok(path)
}
