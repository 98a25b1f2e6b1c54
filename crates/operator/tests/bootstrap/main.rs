//! What machines are told: the template language, the renderer, the tokens.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod document;
mod golden;
mod limits;
mod maps;
mod properties;
mod renderer;
mod sample;
mod tokens;
