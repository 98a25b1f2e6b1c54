use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_bigfleet-unschedulable-pod-controller");
    Command::new(binary).args(arguments).env_remove("KUBECONFIG").output().unwrap()
}

#[test]
fn usage_errors_exit_2_and_bad_configuration_1() {
    for (arguments, code, message) in [
        (&["--resync=10"][..], 2, "needs a unit"),
        (&["--no-such-flag"], 2, "--no-such-flag"),
        (
            &["--priority-class-defaults=/nowhere"],
            1,
            "unschedulable-pod-controller: --priority-class-defaults: cannot read /nowhere",
        ),
        (&["--kubeconfig=/nowhere"], 1, "unschedulable-pod-controller: kubeconfig /nowhere: "),
        (&[], 1, "unschedulable-pod-controller: no kubeconfig given"),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
}
