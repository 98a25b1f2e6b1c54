//! What the charts are generated from, and what holds them to their word. Nothing of it ships.
//!
//! [`source`] reads `api/metrics/observability.yaml`, the one list of metrics, alerts and
//! dashboards; [`reference`], [`rules`] and [`grafana`] write it down for readers, Prometheus and
//! Grafana; [`charts`] copies into each chart what all share; [`generated`] is all of that as
//! files. [`promql`] understands the queries well enough to check them and to let alerts fire.

pub mod charts;
pub mod check;
pub mod generated;
pub mod grafana;
pub mod promql;
pub mod reference;
pub mod rules;
pub mod source;
mod template;

use std::path::{Path, PathBuf};

/// The command that writes every generated file.
pub const GENERATE: &str = "cargo run -p bigfleet-charts --example generate";

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Why something could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// The source file is not what it should be.
    #[error("api/metrics/observability.yaml: {0}")]
    Source(String),

    /// A JSON file is not JSON.
    #[error("{path}: {source}")]
    Json {
        /// Which.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

/// Reads a file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = root().join(path);
    std::fs::read_to_string(&path).map_err(|source| Error::File { path, source })
}
