//! What mdBook calls while it builds the site, and a look at what it built.
//!
//! Pages are read in the repository as well, where they may link to what is not part of the site:
//! code, charts, dashboards. On the site such a link would be dead, so it becomes the name of the
//! file. And the page of a folder is its `README.md` there, its `index.html` here.

mod built;

pub use built::problems;

use std::{
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{Error, links::resolve, page::Page};

/// The folder that the site is made of.
const SOURCE: &str = "docs";

/// Reads a book from standard input and writes it with links that stay on the site.
pub fn preprocess() -> Result<(), Error> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).map_err(Error::file("standard input"))?;
    let wrong = |error: serde_json::Error| Error::Book(error.to_string());
    let mut both: Value = serde_json::from_str(&input).map_err(wrong)?;
    let book = both.get_mut(1).ok_or_else(|| Error::Book("no book".to_owned()))?;
    let items = book.get_mut("items").ok_or_else(|| Error::Book("no items".to_owned()))?;
    stay(items);
    let text = serde_json::to_string(book).map_err(wrong)?;
    io::stdout().write_all(text.as_bytes()).map_err(Error::file("standard output"))
}

fn stay(items: &mut Value) {
    for chapter in items.as_array_mut().into_iter().flatten() {
        let Some(chapter) = chapter.get_mut("Chapter") else { continue };
        let path = chapter.get("source_path").and_then(Value::as_str).map(str::to_owned);
        let content = chapter.get("content").and_then(Value::as_str).map(str::to_owned);
        if let (Some(path), Some(content)) = (path, content) {
            chapter["content"] = Value::String(for_the_site(&path, content));
        }
        stay(&mut chapter["sub_items"]);
    }
}

/// A page of the site, all of whose links stay there.
#[must_use]
pub fn for_the_site(path: &str, content: String) -> String {
    let page = Page::of(Path::new(SOURCE).join(path), content);
    let mut text = page.text.clone();
    for link in page.links.iter().rev() {
        let words = match place(&page.path, &link.target) {
            Place::Elsewhere => continue,
            Place::Exit(file) => named(&link.label, &file),
            Place::Folder(target) => {
                // The label may hold markup; only the target changes.
                let whole = &text[link.range.clone()];
                whole.replacen(&format!("]({})", link.target), &format!("]({target})"), 1)
            }
        };
        text.replace_range(link.range.clone(), &words);
    }
    text
}

/// Where a link leads.
enum Place {
    /// To a page that both have, or out into the world.
    Elsewhere,
    /// To a file that the site does not have.
    Exit(PathBuf),
    /// To the page of a folder, as mdBook would write it.
    Folder(String),
}

fn place(from: &Path, target: &str) -> Place {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(a, b)| (a, Some(b)));
    if file.is_empty() || file.contains("://") {
        return Place::Elsewhere;
    }
    let folder = file.strip_suffix("README.md").or_else(|| file.ends_with('/').then_some(file));
    match (resolve(from, file), folder) {
        (Some(path), _) if !path.starts_with(SOURCE) => Place::Exit(path),
        (_, Some(folder)) => {
            let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
            Place::Folder(format!("{folder}index.md{anchor}"))
        }
        _ => Place::Elsewhere,
    }
}

fn named(label: &str, file: &Path) -> String {
    let name = file.display().to_string();
    match label.trim() {
        label if label == name => format!("`{name}`"),
        label => format!("{label} (`{name}`)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave_the_site_become_names() {
        let text = "[a](b.md) [Shard](../../charts/x.json) [`../README.md`](../../README.md) [c](https://d)";
        assert_eq!(
            for_the_site("reference/y.md", text.to_owned()),
            "[a](b.md) Shard (`charts/x.json`) ../README.md (`README.md`) [c](https://d)"
        );
    }

    #[test]
    fn pages_of_folders_are_found() {
        let text = "[*a*](runbooks/README.md#b) [c](../docs/spec/)";
        assert_eq!(
            for_the_site("y.md", text.to_owned()),
            "[*a*](runbooks/index.md#b) [c](../docs/spec/index.md)"
        );
    }
}
