//! Pages are run, block by block.

use std::{collections::BTreeSet, path::PathBuf};

use bigfleet_docs::{
    console::{Runner, steps},
    page::{self, Page},
    root,
};
use bigfleet_testkit::{binaries::binary, kube::ControlPlane};

/// Pages that need nothing but our binaries.
const PLAIN: [&str; 7] = [
    "docs/concepts.md",
    "docs/quickstart.md",
    "docs/stories.md",
    "docs/tutorials/bring-a-provider.md",
    "docs/tutorials/gpu-gang.md",
    "docs/tutorials/many-clusters.md",
    "docs/tutorials/spot-with-safety.md",
];

/// Pages that need a cluster.
const IN_A_CLUSTER: [&str; 3] =
    ["docs/demand-sources.md", "docs/operator-guide.md", "docs/quickstart-cluster.md"];

/// What pages call, by packages.
const PROGRAMS: [&str; 4] =
    ["bigfleet", "bigfleetctl", "bigfleet-conformance", "bigfleet-provider-sim"];
const PROGRAMS_IN_A_CLUSTER: [&str; 6] = [
    "bigfleet",
    "bigfleetctl",
    "bigfleet-operator",
    "bigfleet-provider-local",
    "bigfleet-unschedulable-pod-controller",
    "kubectl-bigfleet",
];

/// The folder of the binaries, all of which are there.
fn programs(packages: &[&str]) -> PathBuf {
    let all: Vec<PathBuf> = packages.iter().map(|package| binary(package)).collect();
    all[0].parent().unwrap().to_owned()
}

fn run(path: &str, mut runner: Runner) {
    assert!(PLAIN.iter().chain(&IN_A_CLUSTER).any(|page| *page == path), "{path}");
    // What a reader has in the repository.
    for name in ["api", "charts", "examples", "providers"] {
        std::os::unix::fs::symlink(root().join(name), runner.folder().join(name)).unwrap();
    }
    let steps = steps(&Page::read(path).unwrap()).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(!steps.is_empty(), "{path} has nothing to run");
    for step in steps {
        runner.step(&step).unwrap_or_else(|wrong| panic!("{path}, {wrong}"));
    }
}

fn plain(path: &str) {
    run(path, Runner::new(&[programs(&PROGRAMS)]).unwrap());
}

fn in_a_cluster(path: &str) {
    let Some(cluster) = ControlPlane::start_cluster_or_skip() else { return };
    let kube = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let folders: Vec<PathBuf> =
        [programs(&PROGRAMS_IN_A_CLUSTER)].into_iter().chain(kube).collect();
    let runner = Runner::new(&folders).unwrap().with("KUBECONFIG", cluster.kubeconfig());
    run(path, runner);
}

#[test]
fn concepts() {
    plain("docs/concepts.md");
}

#[test]
fn quickstart() {
    plain("docs/quickstart.md");
}

#[test]
fn quickstart_in_a_cluster() {
    in_a_cluster("docs/quickstart-cluster.md");
}

#[test]
fn stories() {
    plain("docs/stories.md");
}

#[test]
fn tutorial_of_a_gang() {
    plain("docs/tutorials/gpu-gang.md");
}

#[test]
fn tutorial_of_spot() {
    plain("docs/tutorials/spot-with-safety.md");
}

#[test]
fn tutorial_of_many_clusters() {
    plain("docs/tutorials/many-clusters.md");
}

#[test]
fn tutorial_of_a_provider() {
    plain("docs/tutorials/bring-a-provider.md");
}

#[test]
fn demand_sources() {
    in_a_cluster("docs/demand-sources.md");
}

#[test]
fn operator_guide() {
    in_a_cluster("docs/operator-guide.md");
}

#[test]
fn every_page_that_shows_a_console_is_run() {
    let runs: BTreeSet<&str> = PLAIN.iter().chain(&IN_A_CLUSTER).copied().collect();
    let shows = page::all().unwrap().into_iter().filter(|path| {
        let page = Page::read(path).unwrap();
        page.blocks.iter().any(|block| block.language() == "console")
    });
    let shows: BTreeSet<String> = shows.map(|path| path.display().to_string()).collect();
    assert_eq!(shows.iter().map(String::as_str).collect::<BTreeSet<_>>(), runs);
}
