//! What machines are told: the template language, the renderer, the tokens.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod blobs;
mod document;
mod golden;
mod limits;
mod maps;
mod properties;
mod renderer;
mod sample;
mod tokens;
