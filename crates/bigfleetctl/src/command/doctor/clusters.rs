//! The CRDs of managed clusters.

use std::{collections::BTreeSet, path::Path, time::Duration};

use bigfleet_crds::{VERSION, available_capacity_crd, capacity_request_crd, upcoming_node_crd};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
};
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::time::timeout;

use super::finding::Findings;

const FIX: &str = "install the CRDs of this version: `kubectl apply --server-side -f api/crd/`, or upgrade the operator's chart";

pub(super) async fn check(
    kubeconfig: Option<&Path>,
    only: &[String],
    within: Duration,
    findings: &mut Findings,
) {
    let Some(path) = kubeconfig else {
        return findings.skipped(
            "crds",
            "clusters",
            "no cluster was looked at",
            "give --kubeconfig with one context per cluster",
        );
    };
    let file = match Kubeconfig::read_from(path) {
        Ok(file) => file,
        Err(error) => {
            let target = path.display().to_string();
            return findings.fault(
                "crds",
                &target,
                error.to_string(),
                "give a readable kubeconfig",
            );
        }
    };
    let named = file.contexts.iter().map(|context| context.name.clone());
    let contexts: BTreeSet<String> =
        named.filter(|name| only.is_empty() || only.contains(name)).collect();
    for missing in only.iter().filter(|name| !contexts.contains(*name)) {
        findings.fault("crds", missing, "no such context", "name a context of --kubeconfig");
    }
    for context in &contexts {
        let looked = timeout(within, cluster(&file, context, findings)).await;
        let problem = looked.unwrap_or_else(|_| Err("no answer in time".to_owned())).err();
        if let Some(problem) = problem {
            findings.fault(
                "crds",
                context,
                problem,
                "make the API server reachable; the account needs `get` on customresourcedefinitions",
            );
        }
    }
}

async fn cluster(file: &Kubeconfig, context: &str, findings: &mut Findings) -> Result<(), String> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..Default::default() };
    let config = Config::from_custom_kubeconfig(file.clone(), &options);
    let config = config.await.map_err(|error| error.to_string())?;
    let client = Client::try_from(config).map_err(|error| error.to_string())?;
    let api: Api<CustomResourceDefinition> = Api::all(client);
    for ours in [capacity_request_crd(), available_capacity_crd(), upcoming_node_crd()] {
        let name = ours.metadata.name.clone().unwrap_or_default();
        let theirs = api.get_opt(&name).await.map_err(|error| error.to_string())?;
        match theirs
            .map_or_else(|| Err("it is not installed".to_owned()), |theirs| compare(&ours, &theirs))
        {
            Ok(()) => findings.ok("crds", context, format!("{name} {VERSION}")),
            Err(problem) => findings.fault("crds", context, format!("{name}: {problem}"), FIX),
        }
    }
    Ok(())
}

/// Whether a cluster's kind has all that ours has.
fn compare(
    ours: &CustomResourceDefinition,
    theirs: &CustomResourceDefinition,
) -> Result<(), String> {
    let version = |crd: &CustomResourceDefinition| -> Option<CustomResourceDefinitionVersion> {
        crd.spec.versions.iter().find(|version| version.name == VERSION).cloned()
    };
    let Some(installed) = version(theirs).filter(|version| version.served) else {
        let names: Vec<&str> = theirs.spec.versions.iter().map(|one| one.name.as_str()).collect();
        return Err(format!("{VERSION} is not served, only {}", names.join(", ")));
    };
    let fields = |version: Option<CustomResourceDefinitionVersion>| {
        let schema = version.and_then(|version| version.schema);
        let mut fields = BTreeSet::new();
        if let Some(root) = schema.and_then(|schema| schema.open_api_v3_schema) {
            collect("", &root, &mut fields);
        }
        fields
    };
    let (ours, theirs) = (fields(version(ours)), fields(Some(installed)));
    let missing: Vec<&str> = ours.difference(&theirs).map(String::as_str).take(5).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("its schema is older: it lacks {}", missing.join(", ")))
}

fn collect(at: &str, schema: &JSONSchemaProps, fields: &mut BTreeSet<String>) {
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{at}.{name}");
        collect(&path, property, fields);
        fields.insert(path);
    }
    if let Some(k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        collect(&format!("{at}[]"), items, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_with_less_is_older() {
        let ours = capacity_request_crd();
        assert_eq!(compare(&ours, &ours), Ok(()));
        let mut older = ours.clone();
        let schema = older.spec.versions[0].schema.as_mut().unwrap();
        let root = schema.open_api_v3_schema.as_mut().unwrap();
        let spec = root.properties.as_mut().unwrap().get_mut("spec").unwrap();
        spec.properties.as_mut().unwrap().remove("coLocation").unwrap();
        let problem = compare(&ours, &older).unwrap_err();
        assert!(problem.contains(".spec.coLocation"), "{problem}");
        older.spec.versions[0].name = "v1beta1".to_owned();
        assert!(compare(&ours, &older).unwrap_err().contains("only v1beta1"));
    }
}
