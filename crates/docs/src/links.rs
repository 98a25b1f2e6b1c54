//! Links that lead nowhere.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use crate::{
    Error,
    page::{self, Page},
    root,
};

/// Every page of the repository, by its path from the root.
pub fn pages() -> Result<BTreeMap<PathBuf, Page>, Error> {
    page::all()?.into_iter().map(|path| Ok((path.clone(), Page::read(path)?))).collect()
}

/// Why a link of a page leads nowhere; none if it leads somewhere. What lies outside of the
/// repository is not looked at.
#[must_use]
pub fn problem(pages: &BTreeMap<PathBuf, Page>, from: &Page, target: &str) -> Option<String> {
    if target.starts_with("https://") {
        return None;
    }
    if target.contains("://") || target.starts_with('/') {
        return Some("is neither https:// nor relative".to_owned());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { Some(from.path.clone()) } else { resolve(&from.path, file) };
    let Some(path) = path else {
        return Some("leads out of the repository".to_owned());
    };
    let whole = root().join(&path);
    if !whole.exists() {
        return Some(format!("{} does not exist", path.display()));
    }
    let page = if whole.is_dir() { path.join("README.md") } else { path };
    let is_page = page.extension().is_some_and(|end| end == "md");
    if whole.is_dir() && from.path.starts_with("docs") && !pages.contains_key(&page) {
        return Some(format!("{} does not exist", page.display()));
    }
    if anchor.is_empty() || !is_page {
        return None;
    }
    let found = pages.get(&page).is_some_and(|page| page.anchors.contains(anchor));
    (!found).then(|| format!("{} has no heading for #{anchor}", page.display()))
}

/// Where a link leads, from the root; none if it leads out of the repository.
#[must_use]
pub fn resolve(from: &Path, file: &str) -> Option<PathBuf> {
    let mut path = from.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir if path.pop() => {}
            Component::ParentDir => return None,
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_told_from_living_ones() {
        let text = "# Here\n".to_owned();
        let page = Page::of(PathBuf::from("docs/SUMMARY.md"), text);
        let pages = BTreeMap::from([(page.path.clone(), page.clone())]);
        for living in ["#here", "https://example.com/", "../Cargo.toml", "spec/wire.md"] {
            assert_eq!(problem(&pages, &page, living), None, "{living}");
        }
        for dead in [
            "#there",
            "nowhere.md",
            "../nowhere",
            "../../x",
            "http://example.com",
            "/docs",
            "spec/",
        ] {
            assert!(problem(&pages, &page, dead).is_some(), "{dead}");
        }
        assert_eq!(resolve(Path::new("docs/a/b.md"), "../c.md"), Some(PathBuf::from("docs/c.md")));
        assert_eq!(resolve(Path::new("a.md"), "../c.md"), None);
    }
}
