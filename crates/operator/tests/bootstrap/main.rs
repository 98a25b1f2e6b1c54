//! What machines are told: the template language, the renderer, the tokens.

mod document;
mod golden;
mod limits;
mod properties;
mod renderer;
mod sample;
mod tokens;
