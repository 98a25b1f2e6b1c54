use std::{io, path::PathBuf};

/// What can go wrong at run time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no scenario is called {name:?}; `bigfleet bench list` names them")]
    UnknownScenario { name: String },
    #[error("worse than the baseline: {0}")]
    Worse(String),
    #[error("scenario {name} in a process of its own: {reason}")]
    Apart { name: &'static str, reason: String },
    #[error("not measured: {0}; what was written above says why")]
    Broken(String),
    #[error("below the bar: {0}; the table says by how much")]
    BelowBar(String),
    #[error("cannot write {path}: {source}")]
    WriteFile { path: PathBuf, source: io::Error },
    #[error(
        "cannot read baseline {path}: {source}; write one with `bigfleet bench all --json FILE`"
    )]
    ReadBaseline { path: PathBuf, source: io::Error },
    #[error("{path} is not a baseline: {source}; write one with `bigfleet bench all --json FILE`")]
    ParseBaseline { path: PathBuf, source: serde_json::Error },
    #[error("scenario {scenario}: {refusal}; its input must pass the gate it measures")]
    BadScenario { scenario: &'static str, refusal: bigfleet_model::gate::Refusal },
    #[error("sessions: {0}")]
    Load(String),
    #[error("cannot write to standard output: {0}")]
    Write(#[from] io::Error),
    #[error("cannot read world {path}: {source}")]
    ReadWorld { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Report(#[from] bigfleet_shard_report::Error),
    #[error("the machines to start with: {0}")]
    Seed(#[from] bigfleet_model::gate::inventory::Rejected),
    #[error(transparent)]
    Flags(clap::Error),
    #[error(transparent)]
    Demo(#[from] bigfleet_demo::Error),
    #[error(transparent)]
    Coordinator(#[from] bigfleet_coordinator::process::Error),
    #[error(transparent)]
    Shard(#[from] bigfleet_shard::process::Error),
    #[error(transparent)]
    Stepper(#[from] bigfleet_shard::stepper::Error),
    #[error("{0}")]
    World(bigfleet_engine::json::WorldError),
}

impl Error {
    /// Input that does not say what it should is a usage error.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::World(_) | Self::UnknownScenario { .. } | Self::Flags(_) => 2,
            Self::Demo(error) if error.is_usage() => 2,
            Self::Shard(error) if error.is_usage() => 2,
            Self::Coordinator(error) if error.is_usage() => 2,
            _ => 1,
        }
    }
}
