//! One cycle as a JSON document (engine chapter §17).

mod form;
mod input;
mod locate;
mod output;

use std::fmt;

use crate::{input::CycleInput, output::CycleOutput};

/// Why a document is no world: where, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldError {
    /// Field, from the root; empty for the document itself.
    pub path: String,
    /// In words.
    pub reason: String,
    /// From 1, if the place could be found.
    pub line: usize,
    /// From 1, if the place could be found.
    pub column: usize,
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "." } else { &self.path };
        write!(f, "{path}: {} at line {} column {}", self.reason, self.line, self.column)
    }
}

impl std::error::Error for WorldError {}

/// Reads a world.
pub fn read_world(text: &str) -> Result<CycleInput, WorldError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let world: form::World = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| parse_error(&error.path().to_string(), error.inner()))?;
    deserializer.end().map_err(|error| parse_error("", &error))?;
    input::convert(world).map_err(|refusal| {
        let (line, column) = locate::locate(text, &refusal.path);
        WorldError { path: refusal.path, reason: refusal.reason, line, column }
    })
}

fn parse_error(path: &str, error: &serde_json::Error) -> WorldError {
    let whole = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    WorldError {
        // Where the text ends too early there is no path to tell.
        path: if matches!(path, "." | "?") { String::new() } else { path.to_owned() },
        reason: whole.strip_suffix(&place).unwrap_or(&whole).to_owned(),
        line: error.line(),
        column: error.column(),
    }
}

/// Prints what a cycle decided; `explain` adds how gangs chose their domain.
pub fn print_output(output: &CycleOutput, explain: bool) -> String {
    // Maps with text keys and plain values: serialising them cannot fail.
    let mut text = serde_json::to_string_pretty(&output::form(output, explain)).unwrap_or_default();
    text.push('\n');
    text
}
