//! What is wrong with the site as it was built.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use regex::Regex;

use crate::{Error, links::resolve};

/// A page of the site.
#[derive(Default)]
struct Html {
    ids: BTreeSet<String>,
    links: Vec<String>,
    /// What a browser fetches to show it.
    fetched: Vec<String>,
}

/// Dead links and calls to elsewhere, of all pages in a folder.
pub fn problems(folder: &Path) -> Result<Vec<String>, Error> {
    let mut pages = BTreeMap::new();
    read(folder, Path::new(""), &mut pages)?;
    let mut problems = Vec::new();
    for (path, page) in &pages {
        for link in page.links.iter().chain(&page.fetched) {
            if let Some(problem) = dead(folder, &pages, path, link) {
                problems.push(format!("{}: {link} {problem}", path.display()));
            }
        }
        let out = page.fetched.iter().filter(|link| link.contains("//"));
        problems.extend(out.map(|link| format!("{}: fetches {link}", path.display())));
    }
    if pages.is_empty() {
        problems.push(format!("{} has no pages", folder.display()));
    }
    Ok(problems)
}

fn read(folder: &Path, within: &Path, pages: &mut BTreeMap<PathBuf, Html>) -> Result<(), Error> {
    let place = folder.join(within);
    for entry in std::fs::read_dir(&place).map_err(Error::file(&place))? {
        let entry = entry.map_err(Error::file(&place))?;
        let path = within.join(entry.file_name());
        if entry.path().is_dir() {
            read(folder, &path, pages)?;
        // This one is shown at any address, and has a base for its links.
        } else if path.extension().is_some_and(|end| end == "html") && path != Path::new("404.html")
        {
            let text = std::fs::read_to_string(entry.path()).map_err(Error::file(entry.path()))?;
            pages.insert(path, html(&text));
        }
    }
    Ok(())
}

fn html(text: &str) -> Html {
    let mut page = Html::default();
    let Ok(tags) = Regex::new(r#"<([a-z0-9]+)\s[^>]*>"#) else { return page };
    let Ok(attributes) = Regex::new(r#"\b(id|href|src)="([^"]*)""#) else { return page };
    for tag in tags.captures_iter(text) {
        for attribute in attributes.captures_iter(&tag[0]) {
            let value = attribute[2].replace("&amp;", "&");
            match (&tag[1], &attribute[1]) {
                (_, "id") => {
                    page.ids.insert(value);
                }
                ("a", _) => page.links.push(value),
                _ => page.fetched.push(value),
            }
        }
    }
    page
}

fn dead(
    folder: &Path,
    pages: &BTreeMap<PathBuf, Html>,
    from: &Path,
    link: &str,
) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("//") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(path) = path.filter(|path| folder.join(path).is_file()) else {
        return Some("leads nowhere");
    };
    let found = pages.get(&path).is_none_or(|page| page.ids.contains(anchor));
    (!anchor.is_empty() && !found).then_some("has no such place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_calls_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "a.html",
            r##"<h1 id="x">X</h1> <a class="y" href="b.html#z">b</a> <a href="#x">x</a>"##,
        );
        write(
            "b.html",
            r##"<h1 id="z">Z</h1> <a href="https://elsewhere/">e</a> <img src="p.svg">"##,
        );
        write("p.svg", "");
        assert_eq!(problems(folder.path()).unwrap(), [""; 0]);
        write(
            "b.html",
            r##"<script src="https://elsewhere/x.js"></script> <a href="c.html">c</a>"##,
        );
        let found = problems(folder.path()).unwrap();
        assert_eq!(
            found,
            [
                "a.html: b.html#z has no such place",
                "b.html: c.html leads nowhere",
                "b.html: fetches https://elsewhere/x.js",
            ]
        );
    }
}
