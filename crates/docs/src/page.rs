//! A page: its headings, its links, its blocks of code.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::{Error, read, root};

/// A page of the repository.
#[derive(Clone, Debug)]
pub struct Page {
    /// Where, from the root.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
    /// What a link may name after `#`.
    pub anchors: BTreeSet<String>,
    /// In the order of the text.
    pub links: Vec<Link>,
    /// In the order of the text.
    pub blocks: Vec<Block>,
    /// Words set as code within the text, with their lines.
    pub spans: Vec<(usize, String)>,
}

/// A link or a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// As written.
    pub target: String,
    /// What the reader sees.
    pub label: String,
    /// Where the whole of it stands in the text.
    pub range: Range<usize>,
    /// Counted from 1.
    pub line: usize,
}

/// A fenced block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What stands after the fence.
    pub info: String,
    /// What stands between the fences.
    pub text: String,
    /// Of the first fence, counted from 1.
    pub line: usize,
}

impl Block {
    /// The first word after the fence.
    #[must_use]
    pub fn language(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or_default()
    }

    /// Whether a word stands after the language.
    #[must_use]
    pub fn says(&self, word: &str) -> bool {
        self.info.split_whitespace().skip(1).any(|said| said == word)
    }

    /// The value of `name=value` after the language.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut words = self.info.split_whitespace().skip(1);
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }
}

impl Page {
    /// Reads a page; `path` is from the root.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let text = read(&path)?;
        Ok(Self::of(path, text))
    }

    /// Reads this text.
    #[must_use]
    pub fn of(path: PathBuf, text: String) -> Self {
        let mut page = Self {
            path,
            text: String::new(),
            anchors: BTreeSet::new(),
            links: Vec::new(),
            blocks: Vec::new(),
            spans: Vec::new(),
        };
        let starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let line = |at: usize| starts.partition_point(|start| *start <= at);
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading: Option<String> = None;
        let mut link: Option<Link> = None;
        let mut block: Option<Block> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for (event, range) in Parser::new_ext(&text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let again = seen.entry(slug.clone()).or_default();
                    let anchor = if *again == 0 { slug } else { format!("{slug}-{again}") };
                    *again += 1;
                    page.anchors.insert(anchor);
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let (target, line) = (dest_url.into_string(), line(range.start));
                    link = Some(Link { target, label: String::new(), range, line });
                }
                Event::End(TagEnd::Link | TagEnd::Image) => page.links.extend(link.take()),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    let (info, line) = (info.into_string(), line(range.start));
                    block = Some(Block { info, text: String::new(), line });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(words) => {
                    if let Some(block) = &mut block {
                        block.text.push_str(&words);
                    }
                    add(&mut heading, &mut link, &words);
                }
                Event::Code(words) => {
                    page.spans.push((line(range.start), words.to_string()));
                    add(&mut heading, &mut link, &words);
                }
                Event::SoftBreak | Event::HardBreak => add(&mut heading, &mut link, " "),
                _ => {}
            }
        }
        page.text = text;
        page
    }
}

fn add(heading: &mut Option<String>, link: &mut Option<Link>, words: &str) {
    if let Some(heading) = heading {
        heading.push_str(words);
    }
    if let Some(link) = link {
        link.label.push_str(words);
    }
}

/// The anchor of a heading, the same for mdBook and for where repositories are read.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.collect()
}

/// Every Markdown file of the repository, from its root.
pub fn all() -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    walk(Path::new(""), &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let place = root().join(folder);
    for entry in std::fs::read_dir(&place).map_err(Error::file(&place))? {
        let entry = entry.map_err(Error::file(&place))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = folder.join(name.as_ref());
        let kind = entry.file_type().map_err(Error::file(&place))?;
        // What builds leave behind is not ours to read.
        let built = ["target", "node_modules", "book", "data"].contains(&name.as_ref());
        if kind.is_dir() && !built && !name.starts_with('.') {
            walk(&path, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_links_and_blocks_are_found_where_they_stand() {
        let text = "# One `two`, three!\n\n[a *b*](c.md#d)\n\n## Again\n## Again\n\n\
                    ```console eventually\n$ x\n```\n\n`code`\n";
        let page = Page::of(PathBuf::from("x.md"), text.to_owned());
        let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["again", "again-1", "one-two-three"]);
        let link = &page.links[0];
        assert_eq!((link.target.as_str(), link.label.as_str(), link.line), ("c.md#d", "a b", 3));
        assert_eq!(&page.text[link.range.clone()], "[a *b*](c.md#d)");
        let block = &page.blocks[0];
        assert_eq!((block.language(), block.text.as_str(), block.line), ("console", "$ x\n", 8));
        assert!(block.says("eventually") && !block.says("console"));
        assert_eq!(page.spans.last().unwrap().1, "code");
    }

    #[test]
    fn values_stand_after_the_language() {
        let block = Block { info: "yaml file=a.yaml".to_owned(), text: String::new(), line: 1 };
        assert_eq!((block.value("file"), block.value("yaml")), (Some("a.yaml"), None));
    }
}
