//! The files that tell clients where the server is and who they are.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Error;
use super::certificates::Certificates;

/// Who a client is.
pub(crate) enum User<'a> {
    /// By certificate, a member of `system:masters`.
    Admin,
    /// By the token of a service account.
    Token(&'a str),
}

/// Writes a kubeconfig. It is JSON, which is YAML too.
pub(crate) fn write_to(
    path: &Path,
    port: u16,
    files: &Certificates,
    user: &User<'_>,
) -> Result<PathBuf, Error> {
    let user: Value = match user {
        User::Admin => json!({
            "client-certificate": files.admin.certificate,
            "client-key": files.admin.key,
        }),
        User::Token(token) => json!({"token": token}),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "clusters": [{
            "name": "test",
            "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": files.authority,
            },
        }],
        "users": [{"name": "user", "user": user}],
    });
    std::fs::write(path, config.to_string())
        .map_err(Error::io(format!("cannot write {}", path.display())))?;
    Ok(path.to_owned())
}
