//! The binaries under test.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Our binary: the one just built, or that of the directory `BIGFLEET_BINARIES`.
pub(crate) fn bigfleet() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_bigfleet"));
    std::env::var_os("BIGFLEET_BINARIES").map_or(built, |dir| Path::new(&dir).join("bigfleet"))
}

/// The provider's.
pub(crate) fn provider_sim() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| beside("bigfleet-provider-sim", "bigfleet-provider-sim"))
}

/// The admin command line's.
pub(crate) fn bigfleetctl() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| beside("bigfleetctl", "bigfleetctl"))
}

/// Beside ours if the whole workspace was built, else built now.
fn beside(name: &str, package: &str) -> PathBuf {
    let ours = bigfleet();
    let binary = ours.with_file_name(name);
    if !binary.exists() {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let profile = ours.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let profile = profile.filter(|name| *name != "debug").unwrap_or("dev");
        let target = ours.ancestors().nth(2).expect("target/profile/binary");
        let built = Command::new(cargo)
            .args(["build", "--locked", &format!("--package={package}")])
            .args([format!("--profile={profile}")])
            .arg("--target-dir")
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo runs").success(), "{name} does not build");
    }
    binary
}
