//! What the binaries say of themselves with `--help`.

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf, process::Command};

use crate::{Error, GENERATE};

/// Binaries of this workspace that people run. `bigfleetctl` has a page of its
/// own.
const BINARIES: [&str; 8] = [
    "bigfleet",
    "bigfleetctl",
    "bigfleet-operator",
    "bigfleet-unschedulable-pod-controller",
    "bigfleet-web-dashboard",
    "kubectl-bigfleet",
    "bigfleet-provider-sim",
    "bigfleet-conformance",
];

/// Help texts by command, such as `bigfleet shard`.
pub type Helps = BTreeMap<String, String>;

/// The help of every command of every binary.
pub fn all(binary: impl Fn(&str) -> PathBuf) -> Result<Helps, Error> {
    let mut helps = Helps::new();
    for name in BINARIES {
        add(&mut helps, &binary(name), name, &[])?;
    }
    Ok(helps)
}

fn add(helps: &mut Helps, binary: &PathBuf, name: &str, words: &[String]) -> Result<(), Error> {
    let command = [&[name.to_owned()], words].concat().join(" ");
    let problem = |problem: String| Error::Help { command: format!("{command} --help"), problem };
    let mut process = Command::new(binary);
    process.args(words).arg("--help").env_clear();
    let output = process.output().map_err(|error| problem(error.to_string()))?;
    if !output.status.success() {
        return Err(problem(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for further in subcommands(&text) {
        add(helps, binary, name, &[words, &[further]].concat())?;
    }
    helps.insert(command, text);
    Ok(())
}

/// Names under `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let section = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let section = section.take_while(|line| line.starts_with(' '));
    let names = section.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The page.
pub(super) fn page(helps: &Helps) -> String {
    let mut page = format!(
        "# Flags\n\nWhat every command says of itself with `--help`. Generated from the binaries; write it anew with \
         `{GENERATE}`.\n\n\
         Every flag can be set by environment as the help says; a flag wins. Durations are written `10s`, `5m`. \
         A usage error ends with exit code 2, a failure with 1. `bigfleetctl` has [its own page](bigfleetctl.md); \
         the reference providers describe theirs in their READMEs.\n"
    );
    for (command, help) in helps.iter().filter(|(command, _)| !command.starts_with("bigfleetctl")) {
        let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        let _ = write!(page, "\n## {command}\n\n```text\n{}\n```\n", lines.join("\n"));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_help() {
        let help = "X\n\nCommands:\n  one  Does\n       more\n  two\n  help  Y\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help), ["one", "two"]);
    }
}
