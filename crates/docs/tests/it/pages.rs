//! Pages are run, block by block.

use std::{collections::BTreeSet, path::PathBuf};

use bigfleet_docs::{
    console::{Runner, steps},
    page::{self, Block, Page},
    root,
};
use bigfleet_testkit::{binaries::binary, kube::ControlPlane};
use tempfile::TempDir;

/// Pages that need nothing but our binaries.
const PLAIN: [&str; 8] = [
    "docs/concepts.md",
    "docs/dashboard.md",
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

/// What `cargo build` makes.
const BUILT_BY_DEFAULT: [&str; 3] = ["bigfleet", "bigfleetctl", "kubectl-bigfleet"];

/// What pages call that need a cluster.
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

/// What somebody has who builds what a page, or the quickstart that it names, tells to build.
fn built_by(page: &Page) -> BTreeSet<String> {
    let named = page.links.iter().any(|link| link.target.ends_with("quickstart.md"));
    let lines = page.blocks.iter().flat_map(|block| block.text.lines());
    let builds = lines.filter(|line| line.starts_with("cargo build --release"));
    let mut built = BTreeSet::new();
    for line in named.then_some("").into_iter().chain(builds) {
        let packages: Vec<&str> = line.split(" -p ").skip(1).map(str::trim).collect();
        let packages = if packages.is_empty() { &BUILT_BY_DEFAULT[..] } else { &packages };
        built.extend(packages.iter().map(|package| match *package {
            "bigfleet-dashboard" => "bigfleet-web-dashboard".to_owned(),
            package => package.to_owned(),
        }));
    }
    built
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
    let folder = TempDir::new().unwrap();
    for name in built_by(&Page::read(path).unwrap()) {
        std::os::unix::fs::symlink(binary(&name), folder.path().join(name)).unwrap();
    }
    run(path, Runner::new(&[folder.path().to_owned()]).unwrap());
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
fn dashboard() {
    plain("docs/dashboard.md");
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

/// Pages that show commands outside of consoles, and why nobody runs them here.
const SHOWN_ONLY: [(&str, &str); 15] = [
    ("CONTRIBUTING.md", "builds and tests: CI itself"),
    ("README.md", "builds; what it asks is asked by the tests of the demo"),
    ("docs/bootstrap-templates.md", "flags in production; that they exist is checked"),
    ("docs/certification.md", "run by CI, and by the conformance suite on itself"),
    ("docs/dashboard.md", "builds"),
    ("docs/operator-guide.md", "wait for pods to run, which needs kubelets and images"),
    ("docs/provider-author-guide.md", "run by CI, with the guide's example"),
    ("docs/quickstart-cluster.md", "builds"),
    ("docs/quickstart.md", "builds"),
    ("docs/runbooks", "need an incident; that they exist is checked"),
    ("docs/simulated-clouds.md", "run by the tests of these clouds"),
    ("docs/stories.md", "need a pod of the reader's own"),
    ("docs/tutorials/bring-a-provider.md", "builds"),
    ("images/README.md", "built and started by CI; images need podman or docker"),
    ("providers", "run by CI, in a workspace of their own"),
];

#[test]
fn commands_that_nobody_runs_are_known() {
    let programs = [
        "bigfleet", "kubectl", "helm", "cargo", "curl", "mdbook", "images/", "podman", "docker",
        "grpcurl", "export ", "git ", "npm ", "npx ",
    ];
    let (mut unknown, mut met) = (Vec::new(), BTreeSet::new());
    for path in page::all().unwrap() {
        let page = Page::read(&path).unwrap();
        let shell =
            |block: &&Block| ["", "sh", "bash", "shell", "text"].contains(&block.language());
        for block in page.blocks.iter().filter(shell) {
            let begins = |line: &str| programs.iter().any(|program| line.starts_with(program));
            if !block.text.lines().any(begins) {
                continue;
            }
            match SHOWN_ONLY.iter().find(|(known, _)| path.starts_with(known)) {
                Some((known, _)) => _ = met.insert(*known),
                None => unknown.push(format!("{}:{}", path.display(), block.line)),
            }
        }
    }
    assert!(unknown.is_empty(), "make these consoles, or say why not: {unknown:?}");
    assert_eq!(met.len(), SHOWN_ONLY.len(), "only these still show commands: {met:?}");
}
