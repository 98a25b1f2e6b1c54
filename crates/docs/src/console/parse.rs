//! What a page tells to do.

use crate::page::{Block, Page};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write a file.
    File {
        /// Its name.
        name: String,
        /// All of it.
        text: String,
    },
    /// Run a command.
    Run(Session),
}

/// A command and what it must print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Where the block begins in the page.
    pub line: usize,
    /// What a shell is given.
    pub command: String,
    /// Lines; none are shown where anything may be printed.
    pub expected: Vec<String>,
    /// Repeat until it prints what is shown.
    pub eventually: bool,
    /// It must end with an exit code other than 0.
    pub fails: bool,
}

/// All that a page tells to do, in order.
pub fn steps(page: &Page) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for block in &page.blocks {
        if let Some(name) = file(block) {
            steps.push(Step::File { name: name.to_owned(), text: block.text.clone() });
        } else if block.language() == "console" {
            steps.extend(sessions(block)?.into_iter().map(Step::Run));
        }
    }
    Ok(steps)
}

/// The file that a block is: by `file=NAME`, or by a first line that is a comment with its name.
fn file(block: &Block) -> Option<&str> {
    let named = || block.text.lines().next()?.strip_prefix("# ");
    let is_name = |name: &&str| name.contains('.') && !name.contains([' ', '/']);
    block.value("file").or_else(|| named().filter(is_name).filter(|_| block.language() == "yaml"))
}

fn sessions(block: &Block) -> Result<Vec<Session>, String> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut continued = false;
    for line in block.text.lines() {
        match (sessions.last_mut(), line.strip_prefix("$ ")) {
            (Some(session), _) if continued => {
                session.command.push('\n');
                session.command.push_str(line);
                continued = line.ends_with('\\');
            }
            (_, Some(command)) => {
                continued = command.ends_with('\\');
                sessions.push(Session {
                    line: block.line,
                    command: command.to_owned(),
                    expected: Vec::new(),
                    eventually: block.says("eventually"),
                    fails: block.says("fails"),
                });
            }
            (Some(session), None) => session.expected.push(line.to_owned()),
            (None, None) => {
                return Err(format!("line {}: a console begins with `$ `", block.line));
            }
        }
    }
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn files_and_commands_come_in_order() {
        let text = "```yaml file=a.yaml\nb: c\n```\n\n```console eventually\n$ one \\\n  two\nout\n$ three\n```\n";
        let steps = steps(&Page::of(PathBuf::from("x.md"), text.to_owned())).unwrap();
        let Step::File { name, text } = &steps[0] else { panic!("{steps:?}") };
        assert_eq!((name.as_str(), text.as_str()), ("a.yaml", "b: c\n"));
        let Step::Run(first) = &steps[1] else { panic!("{steps:?}") };
        assert_eq!(first.command, "one \\\n  two");
        assert_eq!(first.expected, ["out"]);
        assert!(first.eventually && !first.fails);
        let Step::Run(second) = &steps[2] else { panic!("{steps:?}") };
        assert!(second.expected.is_empty());
    }

    #[test]
    fn a_first_line_may_name_the_file() {
        let text = "```yaml\n# a.yaml\nb: c\n```\n\n```yaml\n# A comment.\nb: c\n```\n";
        let steps = steps(&Page::of(PathBuf::from("x.md"), text.to_owned())).unwrap();
        let text = "# a.yaml\nb: c\n".to_owned();
        assert_eq!(steps, [Step::File { name: "a.yaml".to_owned(), text }]);
    }

    #[test]
    fn output_without_a_command_is_a_mistake() {
        let text = "```console\nout\n```\n";
        assert!(steps(&Page::of(PathBuf::from("x.md"), text.to_owned())).is_err());
    }
}
