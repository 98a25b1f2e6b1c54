//! What mdBook calls while it builds the site.
//!
//! Pages are read in the repository as well, where they may link to what is not part of the site:
//! code, charts, dashboards. On the site such a link would be dead, so it becomes the name of the
//! file.

use std::{
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{Error, links::resolve, page::Page};

/// The folder that the site is made of.
const SOURCE: &str = "docs";

/// Reads a book from standard input and writes it without links that leave the site.
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
            chapter["content"] = Value::String(without_exits(&path, content));
        }
        stay(&mut chapter["sub_items"]);
    }
}

/// A page of the site whose links stay on it.
#[must_use]
pub fn without_exits(path: &str, content: String) -> String {
    let page = Page::of(Path::new(SOURCE).join(path), content);
    let mut text = page.text.clone();
    for link in page.links.iter().rev() {
        if let Some(out) = exit(&page.path, &link.target) {
            let name = out.display().to_string();
            let words = match link.label.trim() {
                label if label == name => format!("`{name}`"),
                label => format!("{label} (`{name}`)"),
            };
            text.replace_range(link.range.clone(), &words);
        }
    }
    text
}

/// The file outside of the site that a link leads to.
fn exit(from: &Path, target: &str) -> Option<PathBuf> {
    let (file, _) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() || file.contains("://") {
        return None;
    }
    resolve(from, file).filter(|path| !path.starts_with(SOURCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave_the_site_become_names() {
        let text = "[a](b.md) [Shard](../../charts/x.json) [`../README.md`](../../README.md) [c](https://d)";
        let there = without_exits("reference/y.md", text.to_owned());
        assert_eq!(
            there,
            "[a](b.md) Shard (`charts/x.json`) ../README.md (`README.md`) [c](https://d)"
        );
    }
}
