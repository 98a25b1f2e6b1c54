//! `--target-cmd`: words with places for an address, a state directory, a
//! number of machines.

use std::path::Path;

use crate::Error;

/// A command line with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetCommand {
    words: Vec<String>,
}

impl TargetCommand {
    /// Splits as a shell would, but expands nothing: quotes and backslashes.
    /// `{addr}` must be there, or the suite would not know where to dial.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let words = split(text)?;
        if words.is_empty() {
            return Err(Error::Usage("--target-cmd is empty; write 'bin --addr={addr}'".into()));
        }
        if !words.iter().any(|word| word.contains("{addr}")) {
            return Err(Error::Usage(
                "--target-cmd has no {addr}; write for example \
                 'bin --addr={addr} --state={state} --seed-count={seed}'"
                    .into(),
            ));
        }
        Ok(Self { words })
    }

    /// From words that need no splitting.
    #[must_use]
    pub fn of_words(words: Vec<String>) -> Self {
        Self { words }
    }

    /// With these `--name=value` flags, which replace those of the same name.
    #[must_use]
    pub fn and(&self, flags: &[&str]) -> Self {
        let name = |word: &str| word.split('=').next().unwrap_or(word).to_owned();
        let names: Vec<_> = flags.iter().map(|flag| name(flag)).collect();
        let kept = self.words.iter().filter(|word| !names.contains(&name(word))).cloned();
        Self { words: kept.chain(flags.iter().map(|&flag| flag.to_owned())).collect() }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.words[0]
    }

    /// Whether its state can be told where to live: then it must survive a kill.
    #[must_use]
    pub fn keeps_state(&self) -> bool {
        self.words.iter().any(|word| word.contains("{state}"))
    }

    /// Whether it makes as many machines as it is told.
    #[must_use]
    pub fn takes_seed(&self) -> bool {
        self.words.iter().any(|word| word.contains("{seed}"))
    }

    /// Whether it can be told where to serve its metrics.
    #[must_use]
    pub fn tells_metrics(&self) -> bool {
        self.words.iter().any(|word| word.contains("{metrics}"))
    }

    /// The words with their places filled in.
    #[must_use]
    pub fn fill(&self, addr: &str, metrics: &str, state: &Path, seed: u64) -> Vec<String> {
        let state = state.display().to_string();
        self.words
            .iter()
            .map(|word| {
                word.replace("{addr}", addr)
                    .replace("{metrics}", metrics)
                    .replace("{state}", &state)
                    .replace("{seed}", &seed.to_string())
            })
            .collect()
    }
}

impl std::fmt::Display for TargetCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}

fn split(text: &str) -> Result<Vec<String>, Error> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => match letters.next() {
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => return Err(Error::Usage("--target-cmd ends in a backslash".into())),
            },
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(open) = quote {
        return Err(Error::Usage(format!("--target-cmd: the quote {open} is never closed")));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_like_a_shell() {
        let words = |text| split(text).unwrap();
        assert_eq!(words("a  b\tc"), ["a", "b", "c"]);
        assert_eq!(
            words(r#"a 'b c' "d 'e'" f\ g '' "h\"i""#),
            ["a", "b c", "d 'e'", "f g", "", "h\"i"]
        );
        assert_eq!(words("--x='y z'w"), ["--x=y zw"]);
        assert!(split("a 'b").is_err());
        assert!(split("a \\").is_err());
    }

    #[test]
    fn fills_every_place() {
        let command = TargetCommand::parse("bin --addr={addr} --state={state} -n {seed}").unwrap();
        assert!(command.keeps_state() && command.takes_seed() && !command.tells_metrics());
        assert_eq!(command.program(), "bin");
        assert_eq!(
            command.fill("127.0.0.1:9", "", Path::new("/s"), 512),
            ["bin", "--addr=127.0.0.1:9", "--state=/s", "-n", "512"]
        );
        let other = command.and(&["--addr=[::1]:{seed}", "-v"]);
        let words = other.fill("a", "", Path::new("b"), 1);
        assert_eq!(words, ["bin", "--state=b", "-n", "1", "--addr=[::1]:1", "-v"]);
        let command = TargetCommand::parse("bin {addr} --metrics-addr={metrics}").unwrap();
        assert!(command.tells_metrics());
        let words = command.fill("a", "m:1", Path::new("b"), 1);
        assert_eq!(words, ["bin", "a", "--metrics-addr=m:1"]);
    }

    #[test]
    fn needs_an_address() {
        for text in ["", "   ", "bin --state={state}"] {
            assert!(TargetCommand::parse(text).is_err(), "{text:?}");
        }
        let command = TargetCommand::parse("bin {addr}").unwrap();
        assert!(!command.keeps_state() && !command.takes_seed());
    }
}
