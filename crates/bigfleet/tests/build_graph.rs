//! Dependencies point one way: wire ← model ← engine ← shard ← bigfleet. Reads
//! the build graph and fails on an edge that must not exist, direct or not.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::{collections::BTreeSet, process::Command};

/// Which edges of the graph count.
#[derive(Clone, Copy)]
enum Edges {
    /// What is linked into the crate.
    Linked,
    /// Also what its tests and build scripts use.
    All,
}

struct Forbidden {
    from: &'static str,
    edges: Edges,
    to: &'static [&'static str],
    why: &'static str,
}

const NETWORK: &[&str] = &["tokio", "tonic", "hyper", "rustls", "kube", "k8s-openapi"];

/// A rule for a crate that does not exist yet waits for it.
const FORBIDDEN: &[Forbidden] = &[
    Forbidden {
        from: "bigfleet-wire",
        edges: Edges::Linked,
        to: NETWORK,
        why: "messages alone are for pure crates; clients and servers are the feature `grpc`",
    },
    Forbidden {
        from: "bigfleet-model",
        edges: Edges::Linked,
        to: NETWORK,
        why: "the domain is pure and knows no Kubernetes client",
    },
    Forbidden {
        from: "bigfleet-engine",
        edges: Edges::Linked,
        to: &[
            "tokio",
            "tonic",
            "hyper",
            "rustls",
            "kube",
            "k8s-openapi",
            "tracing",
            "bigfleet-net",
        ],
        why: "decide() is a pure function: no async, no I/O, no logging",
    },
    Forbidden {
        from: "bigfleet-shard",
        edges: Edges::All,
        to: &["bigfleet-coordinator", "bigfleet-shard-report", "kube"],
        why: "a shard decides without a coordinator (coordinator chapter, rule S2)",
    },
    Forbidden {
        from: "bigfleet-shard-report",
        edges: Edges::Linked,
        to: &["bigfleet-coordinator", "kube"],
        why: "a client knows the wire, not who is at its other end",
    },
    Forbidden {
        from: "bigfleet-coordinator",
        edges: Edges::Linked,
        to: &["bigfleet-shard", "bigfleet-engine", "kube"],
        why: "the coordinator makes no decision and dials nobody",
    },
    Forbidden {
        from: "bigfleetctl",
        edges: Edges::Linked,
        to: &["bigfleet-engine", "bigfleet-shard"],
        why: "a view says what the engine said; it derives no decision of its own",
    },
    Forbidden {
        from: "bigfleet-dashboard",
        edges: Edges::Linked,
        to: &["bigfleet-engine", "bigfleet-shard", "bigfleet-coordinator", "bigfleet-provider"],
        why: "a view says what the engine said; it derives no decision of its own",
    },
    Forbidden {
        from: "bigfleet-crds",
        edges: Edges::Linked,
        to: &["bigfleet-net", "bigfleet-wire", "tonic"],
        why: "the kinds are types, whoever uses them",
    },
    Forbidden {
        from: "bigfleet-provider",
        edges: Edges::Linked,
        to: &["bigfleet-engine", "bigfleet-shard", "bigfleet-provider-kit", "kube"],
        why: "both ends of the protocol know machines, not who decides about them",
    },
    Forbidden {
        from: "bigfleet-shard",
        edges: Edges::Linked,
        to: &["bigfleet-provider-kit", "bigfleet-provider-sim"],
        why: "providers are processes of their own; simulated ones are a fixture",
    },
    Forbidden {
        from: "bigfleet-coordinator",
        edges: Edges::Linked,
        to: &["bigfleet-provider-kit", "bigfleet-provider-sim"],
        why: "the coordinator knows no provider",
    },
    Forbidden {
        from: "bigfleet-scripted",
        edges: Edges::All,
        to: &["bigfleet-shard", "bigfleet-engine", "bigfleet-coordinator", "kube"],
        why: "a scripted peer knows the wire, not who is at its other end",
    },
    Forbidden {
        from: "bigfleet-provider-sim",
        edges: Edges::Linked,
        to: &["bigfleet-engine", "bigfleet-shard", "bigfleet-coordinator", "kube"],
        why: "a provider sees the contract, not who calls it",
    },
    Forbidden {
        from: "bigfleet-provider-kit",
        edges: Edges::Linked,
        to: &["bigfleet-engine", "bigfleet-shard", "bigfleet-coordinator", "kube"],
        why: "a provider sees the contract, not who calls it; nodes are the feature `node-ready`",
    },
    Forbidden {
        from: "bigfleet-in-cluster",
        edges: Edges::Linked,
        to: &["bigfleet-model", "bigfleet-crds", "bigfleet-operator"],
        why: "caches, leases and pacing are the same for any kind of object",
    },
    Forbidden {
        from: "bigfleet-operator",
        edges: Edges::All,
        to: &["bigfleet-shard", "bigfleet-engine", "bigfleet-coordinator", "bigfleet-provider"],
        why: "an operator knows the wire, not who decides at its other end",
    },
    Forbidden {
        from: "bigfleet-unschedulable-pod-controller",
        edges: Edges::Linked,
        to: &["bigfleet-operator", "bigfleet-shard", "bigfleet-engine", "bigfleet-scripted"],
        why: "the pod controller writes requests and knows nobody who reads them",
    },
    Forbidden {
        from: "bigfleet-plain",
        edges: Edges::Linked,
        to: NETWORK,
        why: "what command lines print is text, wherever it came from",
    },
    Forbidden {
        from: "kubectl-bigfleet",
        edges: Edges::Linked,
        to: &["bigfleet-engine", "bigfleet-shard", "bigfleet-coordinator", "bigfleet-provider"],
        why: "the plugin reads three kinds and reaches no shard",
    },
];

/// No crate may link these: one TLS stack, one cryptography.
const BANNED: &[&str] = &["ring", "openssl", "openssl-sys", "native-tls", "rustls-pemfile"];

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("cargo prints text")
}

/// Every package that `package` reaches, itself included.
fn reached(package: &str, edges: Edges, further: &[&str]) -> BTreeSet<String> {
    let edges = match edges {
        Edges::Linked => "normal",
        Edges::All => "normal,build,dev",
    };
    let mut arguments =
        vec!["tree", "--locked", "--prefix=none", "--format={p}", "--edges", edges, "-p", package];
    arguments.extend(further);
    first_words(&cargo(&arguments))
}

fn first_words(lines: &str) -> BTreeSet<String> {
    lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Names of the crates of this workspace.
fn members() -> BTreeSet<String> {
    let depth = ["--workspace", "--depth=0"];
    first_words(&cargo(
        &[&["tree", "--locked", "--prefix=none", "--format={p}"], &depth[..]].concat(),
    ))
}

#[test]
fn no_crate_reaches_what_it_must_not_know() {
    let members = members();
    let mut broken = Vec::new();
    for rule in FORBIDDEN.iter().filter(|rule| members.contains(rule.from)) {
        let reached = reached(rule.from, rule.edges, &[]);
        for to in rule.to.iter().filter(|to| reached.contains(**to)) {
            broken.push(format!("{} -> {to}: {}", rule.from, rule.why));
        }
    }
    assert!(broken.is_empty(), "forbidden edges:\n{}", broken.join("\n"));
}

/// Who must not be known to a cycle.
const SLOW_TIER: &[&str] = &["bigfleet-coordinator", "bigfleet-shard-report"];

/// Rule R1 of the shard chapter: whatever a cycle reaches, by code that ships or by
/// tests, those of its dependencies included, decides without a coordinator.
#[test]
fn shard_inv_01_nothing_reachable_from_the_cycle_knows_the_coordinator() {
    let members = members();
    let mut waiting = vec!["bigfleet-shard".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(from) = waiting.pop() {
        if !seen.insert(from.clone()) {
            continue;
        }
        // Tests are followed for the crate that is asked about alone.
        let reached = reached(&from, Edges::All, &["--all-features"]);
        for to in SLOW_TIER {
            assert!(!reached.contains(*to), "the cycle -> {from} -> {to}");
        }
        waiting.extend(reached.into_iter().filter(|to| members.contains(to)));
    }
    for part in ["bigfleet-engine", "bigfleet-scripted", "bigfleet-oracle"] {
        assert!(seen.contains(part), "the walk passes by {part}");
    }
}

#[test]
fn no_crate_links_a_second_tls_stack() {
    for member in members() {
        let reached = reached(&member, Edges::All, &["--all-features"]);
        for banned in BANNED {
            assert!(!reached.contains(*banned), "{member} -> {banned}");
        }
    }
}

/// The last of the line: nothing is built on the command lines.
const LAST: &[&str] = &["bigfleetctl", "kubectl-bigfleet"];

#[test]
fn nothing_depends_on_a_command_line() {
    let members = members();
    for last in LAST {
        assert!(members.contains(*last), "{last} is not built");
        for member in members.iter().filter(|member| member != last) {
            let reached = reached(member, Edges::All, &["--all-features"]);
            assert!(!reached.contains(*last), "{member} -> {last}");
        }
    }
}

/// Helpers of tests and generators, which nothing that ships may link.
const TEST_ONLY: &[&str] = &[
    "bigfleet-testkit",
    "bigfleet-oracle",
    "bigfleet-e2e",
    "bigfleet-charts",
    "bigfleet-across",
    "bigfleet-docs",
];

#[test]
fn nothing_that_ships_links_a_helper_of_tests() {
    let ships = |member: &String| !TEST_ONLY.contains(&member.as_str());
    for member in members().into_iter().filter(ships) {
        let reached = reached(&member, Edges::Linked, &["--all-features"]);
        for helper in TEST_ONLY {
            assert!(!reached.contains(*helper), "{member} -> {helper}");
        }
    }
}

#[test]
fn the_graph_is_really_read() {
    assert!(members().contains("bigfleet"));
    assert!(reached("bigfleet-model", Edges::Linked, &[]).contains("bigfleet-wire"));
    assert!(!reached("bigfleet-wire", Edges::Linked, &[]).contains("protox"));
    assert!(reached("bigfleet-wire", Edges::All, &[]).contains("protox"));
    assert!(reached("bigfleet-wire", Edges::Linked, &["--features=grpc"]).contains("tokio"));
    assert!(reached("bigfleet-shard-report", Edges::Linked, &[]).contains("bigfleet-shard"));
}
