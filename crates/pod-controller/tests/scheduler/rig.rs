//! A kube-scheduler beside the control plane.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

pub(crate) struct Scheduler(Child);

impl Scheduler {
    /// Starts one, or says why the test is skipped.
    pub(crate) fn start_or_skip(kubeconfig: &Path) -> Option<Self> {
        let Some(binary) = binary() else {
            let required = std::env::var_os("BIGFLEET_REQUIRE_KUBE").is_some_and(|it| it == "1");
            assert!(!required, "kube-scheduler not found in KUBEBUILDER_ASSETS or PATH");
            // Not `eprintln!`, which the test harness swallows when a test passes.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: kube-scheduler not found; put it into KUBEBUILDER_ASSETS or PATH"
            );
            return None;
        };
        let kubeconfig = kubeconfig.display();
        let child = Command::new(binary)
            .arg(format!("--kubeconfig={kubeconfig}"))
            .arg(format!("--authentication-kubeconfig={kubeconfig}"))
            .arg(format!("--authorization-kubeconfig={kubeconfig}"))
            .args(["--leader-elect=false", "--secure-port=0"])
            .args(["--kube-api-qps=500", "--kube-api-burst=1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self(child))
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn binary() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = assets.map(PathBuf::from).into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("kube-scheduler")).find(|binary| binary.is_file())
}
