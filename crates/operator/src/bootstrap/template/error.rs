//! Where a template is wrong.

use thiserror::Error;

/// The name templates go by in their errors.
pub(super) const NAME: &str = "bootstrap";

/// The text is not a template. Quotes names out of the template, never its
/// literals: those may be join tokens.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("template: {NAME}:{line}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// The template could not be rendered. Quotes names and types, never values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("template: {NAME}:{line}:{column}: {message}")]
pub struct RenderError {
    /// Line, from 1.
    pub line: usize,
    /// Byte of the line, from 0.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl RenderError {
    pub(super) fn at(source: &[u8], position: usize, message: String) -> Self {
        let before = source.get(..position).unwrap_or(source);
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        Self { line: 1 + newlines(before), column: before.len() - line_start, message }
    }
}

pub(super) fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count() - 1
}
