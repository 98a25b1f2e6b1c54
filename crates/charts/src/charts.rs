//! What charts share, and the CRDs of the operator's.

use std::path::PathBuf;

use serde_json::Value;

use crate::{Error, GENERATE, generated::File, read, root};

/// All three.
pub const CHARTS: [&str; 3] =
    ["bigfleet", "bigfleet-operator", "bigfleet-unschedulable-pod-controller"];

/// The chart that brings the CRDs.
const WITH_CRDS: &str = "bigfleet-operator";

/// Generated files of all charts, but for rules and dashboards.
pub fn files() -> Result<Vec<File>, Error> {
    let common = read("crates/charts/shared/_common.tpl")?;
    let mut files = crds()?;
    for chart in CHARTS {
        files.push(File {
            path: format!("charts/{chart}/templates/_common.tpl"),
            text: common.clone(),
        });
        files.push(schema(chart)?);
    }
    Ok(files)
}

/// The chart's schema with the definitions that all share. Only those are generated: its
/// properties are the chart's own.
fn schema(chart: &str) -> Result<File, Error> {
    let parse = |path: &str| -> Result<Value, Error> {
        serde_json::from_str(&read(path)?)
            .map_err(|source| Error::Json { path: PathBuf::from(path), source })
    };
    let path = format!("charts/{chart}/values.schema.json");
    let mut schema = parse(&path)?;
    schema["$defs"] = parse("crates/charts/shared/defs.json")?;
    Ok(File { path, text: format!("{schema:#}\n") })
}

/// The manifests of `api/crd` as templates.
fn crds() -> Result<Vec<File>, Error> {
    let folder = root().join("api/crd");
    let failed = |source| Error::File { path: folder.clone(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    names
        .iter()
        .map(|name| {
            Ok(File {
                path: format!("charts/{WITH_CRDS}/templates/crds/{name}"),
                text: crd(&read(format!("api/crd/{name}"))?),
            })
        })
        .collect()
}

/// Kept at uninstall, since deleting a CRD deletes every object of its kind.
fn crd(manifest: &str) -> String {
    let body = manifest.split_once("---\n").map_or(manifest, |(_, body)| body);
    // Helm must not read braces of a description.
    let body = body.replace("{{", "{{ `{{` }}");
    let body = body.replacen(
        "metadata:\n",
        "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n  labels:\n    \
         {{- include \"bigfleet.labels\" (list . .Chart.Name) | nindent 4 }}\n",
        1,
    );
    format!(
        "{{{{- /* Generated from api/crd; do not edit.\n{GENERATE} */ -}}}}\n\
         {{{{- if .Values.crds.install }}}}\n{body}{{{{- end }}}}\n"
    )
}
