//! Commands of ours that a page names: do they exist, and do they take these flags?

use crate::{page::Page, reference::flags::Helps};

/// Ways to call a binary, and its name.
const CALLS: [(&str, &str); 7] = [
    ("cargo run --release --bin bigfleetctl -- ", "bigfleetctl "),
    ("cargo run --release --bin kubectl-bigfleet -- ", "kubectl-bigfleet "),
    ("cargo run --release -p bigfleet-dashboard -- ", "bigfleet-web-dashboard "),
    ("cargo run --release -p bigfleetctl -- ", "bigfleetctl "),
    ("cargo run --release -p bigfleet-provider-sim -- ", "bigfleet-provider-sim "),
    ("cargo run --release -- ", "bigfleet "),
    ("kubectl bigfleet ", "kubectl-bigfleet "),
];

/// What a page names, with lines: commands in blocks and in the text.
#[must_use]
pub fn named(page: &Page) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for block in &page.blocks {
        let shell = ["", "console", "sh", "bash", "text"].contains(&block.language());
        let joined = block.text.replace("\\\n", " ");
        for line in joined.lines().filter(|_| shell) {
            let line = line.trim_start_matches("$ ");
            let line = line.split(" # ").next().unwrap_or_default();
            // Only what begins a line or follows a pipe is a command.
            let parts = line.split(" | ").filter_map(command);
            found.extend(parts.map(|command| (block.line, command)));
        }
    }
    let spans = page.spans.iter().filter_map(|(line, words)| Some((*line, command(words)?)));
    found.extend(spans);
    found
}

/// The words as a call of one of our binaries, if they are one.
fn command(words: &str) -> Option<String> {
    let words = called(words.trim().trim_end_matches(['&', ';']).trim_end());
    for (call, binary) in CALLS {
        if let Some(rest) = words.strip_prefix(call) {
            return Some(format!("{binary}{rest}"));
        }
    }
    let first = words.split_whitespace().next()?;
    let ours = ["bigfleet", "bigfleetctl", "kubectl-bigfleet"].contains(&first)
        || first.starts_with("bigfleet-");
    (ours && words.contains(' ')).then(|| words.to_owned())
}

/// Without the label of a line that a program printed, and without variables set for the call.
fn called(words: &str) -> &str {
    let is_set = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let mut rest = words;
    while let Some((_, after)) = rest.split_once(' ').filter(|(first, _)| is_set(first)) {
        rest = after.trim_start();
    }
    // A label and a variable: `terminal   BIGFLEET_CONFIG=… cargo run …`.
    match rest.split_once(' ').map(|(_, after)| after.trim_start()) {
        Some(after) if rest == words && after.split(' ').next().is_some_and(is_set) => {
            called(after)
        }
        _ => rest,
    }
}

/// Words as a shell splits them; what is quoted is one word, and no flag.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                words.extend(words.last().is_some_and(String::is_empty).then(|| "\"".to_owned()));
            }
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Why a command cannot be run; none if it can, or if the binary is not one of `helps`.
#[must_use]
pub fn problem(helps: &Helps, command: &str) -> Option<String> {
    let words = words(command);
    let mut words = words.iter().map(String::as_str);
    let mut called = words.next()?.to_owned();
    let mut help = helps.get(&called)?.as_str();
    let mut rest: Vec<&str> = words.collect();
    // Flags may stand before the command.
    while let Some(place) = rest
        .iter()
        .take_while(|word| **word != "--")
        .position(|word| helps.contains_key(&format!("{called} {word}")))
    {
        called = format!("{called} {}", rest.remove(place));
        help = &helps[&called];
    }
    let needs_more = help.contains("\nCommands:\n");
    let plain = |word: &&&str| !word.starts_with('-') && word.chars().all(char::is_lowercase);
    if let Some(unknown) = rest.first().filter(plain).filter(|_| needs_more) {
        return Some(format!("{called} has no command {unknown}"));
    }
    let flags = rest.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    for flag in flags {
        let end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
        let name = flag.split(end).next().unwrap_or_default();
        let known = help.match_indices(name).any(|(at, _)| {
            let after = help[at + name.len()..].chars().next();
            after.is_none_or(end)
        });
        if !known {
            return Some(format!("{called} has no flag {name}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn helps() -> Helps {
        let text = |text: &str| text.to_owned();
        Helps::from([
            (text("bigfleet"), text("Usage\n\nCommands:\n  shard\n")),
            (text("bigfleet shard"), text("Options:\n  --seed-machines <N>  [x]\n")),
        ])
    }

    #[test]
    fn what_does_not_exist_is_told() {
        let problem = |command: &str| problem(&helps(), command);
        assert_eq!(problem("bigfleet shard --seed-machines=4"), None);
        assert_eq!(problem("bigfleet --help"), Some("bigfleet has no flag --help".to_owned()));
        assert!(problem("bigfleet shard --seed").is_some());
        assert_eq!(problem("bigfleet shard --seed-machines 'x --seed'"), None);
        assert!(problem("bigfleet shards").is_some());
        assert_eq!(problem("bigfleet-elsewhere --x"), None);
    }

    #[test]
    fn what_a_program_prints_to_be_typed_is_a_command() {
        let words =
            "terminal   BIGFLEET_CONFIG=/x/y A=b cargo run --release --bin bigfleetctl -- top";
        assert_eq!(command(words).as_deref(), Some("bigfleetctl top"));
        assert_eq!(command("see BIGFLEET_CONFIG=/x"), None);
        assert_eq!(command("X=1 bigfleet shard").as_deref(), Some("bigfleet shard"));
    }

    #[test]
    fn commands_are_found_in_blocks_and_in_the_text() {
        let text = "`bigfleetctl top` and `bigfleetctl`\n\n```\nkubectl bigfleet why x | cat # y\n\
                    kubectl-bigfleet --context=b why\n\
                    cargo run --release -- shard \\\n  --id a &\n```\n\n```yaml\nbigfleet: x\n```\n";
        let page = Page::of(PathBuf::from("x.md"), text.to_owned());
        let found: Vec<String> = named(&page).into_iter().map(|(_, command)| command).collect();
        let expected = [
            "kubectl-bigfleet why x",
            "kubectl-bigfleet --context=b why",
            "bigfleet shard    --id a",
            "bigfleetctl top",
        ];
        assert_eq!(found, expected);
    }
}
