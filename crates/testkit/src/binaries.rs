//! Binaries of this workspace, for tests of crates that do not build them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A binary by its name: in the directory `BIGFLEET_BINARIES`, else beside the test
/// that runs, built now if it is not there.
///
/// # Panics
///
/// When it does not build.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("BIGFLEET_BINARIES") {
        return Path::new(&folder).join(name);
    }
    // target/<profile>/deps/<test>
    let test = std::env::current_exe().unwrap_or_default();
    let profile = test.ancestors().nth(2).unwrap_or_else(|| Path::new(""));
    beside(&profile.join("bigfleet"), name)
}

/// A binary beside another, `ours`; built now if it is not there.
///
/// # Panics
///
/// When it does not build.
#[must_use]
pub fn beside(ours: &Path, name: &str) -> PathBuf {
    let (binary, package) = (ours.with_file_name(name), package(name));
    // Whoever runs the tests of this workspace has built its binaries, and not those of another:
    // one that lies there may be of an older tree.
    if !binary.exists() || manifest(package) != OURS {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let profile = ours.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let profile = profile.filter(|name| *name != "debug").unwrap_or("dev");
        let target = ours.ancestors().nth(2).unwrap_or_else(|| Path::new("target"));
        let built = Command::new(cargo)
            .args(["build", "--locked", &format!("--package={package}")])
            .arg(format!("--manifest-path={}/{}", env!("CARGO_MANIFEST_DIR"), manifest(package)))
            .args([format!("--profile={profile}")])
            .arg("--target-dir")
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.is_ok_and(|status| status.success()), "{package} does not build");
    }
    binary
}

/// The package of a binary, which mostly has its name.
fn package(name: &str) -> &str {
    match name {
        "bigfleet-web-dashboard" => "bigfleet-dashboard",
        _ => name,
    }
}

/// The manifest of this workspace.
const OURS: &str = "../../Cargo.toml";

/// Providers other than the simulated one are a workspace of their own.
fn manifest(package: &str) -> &'static str {
    match package {
        "bigfleet-provider-local" | "bigfleet-provider-static" | "bigfleet-provider-ec2" => {
            "../../providers/Cargo.toml"
        }
        _ => OURS,
    }
}
