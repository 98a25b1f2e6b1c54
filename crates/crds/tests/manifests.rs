//! The committed manifests are those of the types.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use bigfleet_crds::manifests::{GENERATE, manifests};
use bigfleet_crds::{available_capacity_crd, capacity_request_crd, upcoming_node_crd};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api/crd")
}

#[test]
fn committed_manifests_are_current() {
    let mut expected = BTreeSet::new();
    for manifest in manifests().unwrap() {
        let committed = std::fs::read_to_string(folder().join(&manifest.file_name));
        assert_eq!(
            committed.unwrap_or_default(),
            manifest.yaml,
            "api/crd/{} is stale; run: {GENERATE}",
            manifest.file_name
        );
        expected.insert(manifest.file_name);
    }
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected, "api/crd holds the manifests and nothing else");
}

#[test]
fn the_yaml_reads_back_as_the_definitions() {
    let definitions = [capacity_request_crd(), available_capacity_crd(), upcoming_node_crd()];
    for (manifest, definition) in manifests().unwrap().iter().zip(definitions) {
        let read: CustomResourceDefinition = serde_saphyr::from_str(&manifest.yaml).unwrap();
        assert_eq!(read, definition, "{}", manifest.file_name);
    }
}

#[test]
fn files_are_named_after_their_definitions() {
    let names: Vec<_> = manifests().unwrap().into_iter().map(|m| m.file_name).collect();
    assert_eq!(
        names,
        [
            "bigfleet.lucy.sh_capacityrequests.yaml",
            "bigfleet.lucy.sh_availablecapacities.yaml",
            "bigfleet.lucy.sh_upcomingnodes.yaml",
        ]
    );
}
