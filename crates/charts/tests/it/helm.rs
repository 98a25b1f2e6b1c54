//! Runs helm.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::Command,
    sync::OnceLock,
};

use bigfleet_charts::root;
use serde_json::Value;

/// The versions that charts are rendered for: the oldest that they take, and the newest.
pub(crate) const KUBE: [&str; 2] = ["1.31.0", "1.36.3"];

/// Where helm is, or none with a message; a failure where `BIGFLEET_REQUIRE_KUBE=1`.
pub(crate) fn helm() -> Option<&'static PathBuf> {
    static HELM: OnceLock<Option<PathBuf>> = OnceLock::new();
    HELM.get_or_init(|| {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = assets.map(PathBuf::from).into_iter().chain(std::env::split_paths(&path));
        let found = folders.map(|folder| folder.join("helm")).find(|file| file.is_file());
        if found.is_none() {
            let message =
                "helm not found in KUBEBUILDER_ASSETS or PATH; get it from https://helm.sh";
            let required = std::env::var_os("BIGFLEET_REQUIRE_KUBE").is_some_and(|one| one == "1");
            assert!(!required, "{message}");
            // Not `eprintln!`, which the test harness swallows when a test passes.
            let _ = writeln!(io::stderr(), "skipped: {message}");
        }
        found
    })
    .as_ref()
}

/// The values of `tests/values/<name>.yaml`.
pub(crate) fn values(name: &str) -> Value {
    let path = format!("{}/tests/values/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What helm prints, or what it says against it.
pub(crate) fn print(chart: &str, kube: &str, values: &Value) -> Result<String, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{values}").unwrap();
    let output = Command::new(helm().unwrap())
        .args(["template", "test", "--namespace", "bigfleet-system", "--kube-version", kube])
        .arg("--values")
        .arg(file.path())
        .arg(root().join("charts").join(chart))
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// The objects that a chart renders to.
pub(crate) fn objects(chart: &str, values: &Value) -> Vec<Value> {
    let text = print(chart, KUBE[1], values).unwrap_or_else(|error| panic!("{chart}: {error}"));
    parsed(&text)
}

pub(crate) fn parsed(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|one| one.trim_start_matches("---\n"));
    documents
        .map(|one| {
            serde_saphyr::from_str::<Value>(one).unwrap_or_else(|error| panic!("{error}\n{one}"))
        })
        .filter(|value| !value.is_null())
        .collect()
}

/// The one object of a kind and name.
pub(crate) fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found =
        objects.iter().filter(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    let one = found.next().unwrap_or_else(|| panic!("no {kind} {name}"));
    assert!(found.next().is_none(), "two {kind} {name}");
    one
}

/// Arguments of a workload's container, as a kubelet would pass them to the pod with ordinal 0.
pub(crate) fn args(workload: &Value) -> Vec<String> {
    let pod = format!("{}-0", workload["metadata"]["name"].as_str().unwrap());
    let args = workload["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    args.iter().map(|arg| arg.as_str().unwrap().replace("$(POD_NAME)", &pod)).collect()
}
