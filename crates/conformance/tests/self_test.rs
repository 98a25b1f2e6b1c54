//! A short self-test: the kit is sound by the smoke tests, and a dozen mutants
//! of all kinds are caught. `.ci/run` runs the whole matrix.

#![cfg(feature = "self-test")]
#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::process::{Command, Output};

fn self_test(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bigfleet-conformance"))
        .arg("self-test")
        .args(arguments)
        .output()
        .expect("the suite runs")
}

#[test]
fn sound_targets_pass_and_mutants_are_caught() {
    let output = self_test(&["--quick"]);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("13 mutants, 0 survived a test"), "{out}");
}

#[test]
fn an_unknown_mutant_is_a_usage_error() {
    let output = self_test(&["--mutant=no-such"]);
    assert_eq!(output.status.code(), Some(2));
}
