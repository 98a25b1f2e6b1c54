//! References that are generated.

mod api;
mod crds;
pub mod flags;
mod scaling;

use std::path::PathBuf;

use crate::Error;

/// A page that is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where, from the root.
    pub path: &'static str,
    /// All of it.
    pub text: String,
}

/// All of them; `binary` says where a binary is, by the name of its package.
pub fn files(binary: impl Fn(&str) -> PathBuf) -> Result<Vec<File>, Error> {
    Ok(vec![
        File { path: "docs/reference/api.md", text: api::page()? },
        File { path: "docs/reference/crds.md", text: crds::page()? },
        File { path: "docs/reference/flags.md", text: flags::page(&flags::all(binary)?) },
        File { path: "docs/scaling-guide.md", text: scaling::page()? },
    ])
}

/// Text for one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
