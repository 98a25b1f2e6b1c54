use std::{io, path::PathBuf};

/// What can go wrong at run time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read baseline {path}: {source}; write one with `bigfleet bench --json`")]
    ReadBaseline { path: PathBuf, source: io::Error },
    #[error("{path} is not a baseline: {source}; write one with `bigfleet bench --json`")]
    ParseBaseline { path: PathBuf, source: serde_json::Error },
    #[error("scenario {scenario}: {refusal}; its input must pass the gate it measures")]
    BadScenario { scenario: &'static str, refusal: bigfleet_model::gate::Refusal },
    #[error("cannot write the report: {0}")]
    Write(#[from] io::Error),
}
