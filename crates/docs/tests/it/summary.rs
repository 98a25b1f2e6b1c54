//! The site has every page, and its title the version.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use bigfleet_docs::{links::resolve, page, page::Page, root};

#[test]
fn the_summary_names_every_page_once() {
    let summary = Page::read("docs/SUMMARY.md").unwrap();
    let named: Vec<PathBuf> =
        summary.links.iter().map(|link| resolve(&summary.path, &link.target).unwrap()).collect();
    let once: BTreeSet<PathBuf> = named.iter().cloned().collect();
    assert_eq!(once.len(), named.len(), "a page is named twice");
    let pages: BTreeSet<PathBuf> = page::all()
        .unwrap()
        .into_iter()
        .filter(|path| path.starts_with("docs") && *path != summary.path)
        .collect();
    let missing: Vec<&PathBuf> = pages.difference(&once).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
    assert_eq!(once, pages);
}

#[test]
fn the_site_tells_which_version_it_is_of() {
    let book = std::fs::read_to_string(root().join("book.toml")).unwrap();
    let title = format!("title = \"BigFleet {}\"", env!("CARGO_PKG_VERSION"));
    assert!(book.contains(&title), "book.toml needs {title}");
}

/// Pages are offline: nothing that a browser would fetch from elsewhere.
#[test]
fn pictures_are_files_of_ours() {
    for path in page::all().unwrap().into_iter().filter(|path| path.starts_with("docs")) {
        let page = Page::read(&path).unwrap();
        for link in page.links.iter().filter(|link| page.text[link.range.clone()].starts_with('!'))
        {
            let file = resolve(&path, &link.target).unwrap();
            assert!(file.starts_with(Path::new("docs")), "{}: {}", path.display(), link.target);
            let picture = std::fs::read(root().join(&file)).unwrap();
            // Only drawings can fetch anything.
            if file.extension().is_some_and(|kind| kind == "svg") {
                let text = String::from_utf8(picture).unwrap();
                let text = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains("http"), "{} calls out", file.display());
            }
        }
    }
}
