//! The binaries under test.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use bigfleet_testkit::binaries::beside;

/// Our binary: the one just built, or that of the directory `BIGFLEET_BINARIES`.
pub(crate) fn bigfleet() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_bigfleet"));
    std::env::var_os("BIGFLEET_BINARIES").map_or(built, |dir| Path::new(&dir).join("bigfleet"))
}

/// The provider's.
pub(crate) fn provider_sim() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| beside(&bigfleet(), "bigfleet-provider-sim"))
}

/// The admin command line's.
pub(crate) fn bigfleetctl() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| beside(&bigfleet(), "bigfleetctl"))
}
