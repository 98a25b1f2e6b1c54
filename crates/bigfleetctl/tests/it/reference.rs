//! The reference is what the command line says of itself.

use std::{fmt::Write as _, fs, path::Path};

use bigfleetctl::cli;
use clap::Command;

const PREFACE: &str = "# bigfleetctl

The admin command line. Shows and changes a fleet: who owns what, why a need waits, and the brake. \
Generated from the command line itself; write it anew with `UPDATE_REFERENCE=1 cargo test -p bigfleetctl \
--test it reference`.

Exit codes: 0 success, 1 failure, 2 usage, 3 no coordinator leader reachable, 4 permission. Errors go to standard \
error as `bigfleetctl: <error>`.

Commands that change the fleet print what will change and ask, unless `--yes`; `--dry-run` shows it only; without \
a terminal and without `--yes` they refuse with exit code 2.

Configuration: `~/.config/bigfleet/config.yaml`, or the file that `BIGFLEET_CONFIG` names. Unknown fields are \
refused. Flags win over the context, whole sets of `--tls-*` at a time.

```yaml
currentContext: prod
contexts:
  prod:
    coordinator: [coord-0.example:7790, coord-1.example:7790, coord-2.example:7790]
    tls: {cert: tls.crt, key: tls.key, ca: ca.crt}   # relative to this file
    output: table
```

Beside it `shards-<context>.json` keeps the last known addresses of shards, so that `pause` works with every \
coordinator down.
";

fn page() -> String {
    let mut root = cli::command();
    root.build();
    let mut page = PREFACE.to_owned();
    let _ = write!(page, "\n## Flags of every command\n\n");
    flags(&mut page, &root, true);
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        section(&mut page, command, "");
    }
    page
}

fn section(page: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent}{}", command.get_name());
    let _ = write!(page, "\n## `{name}`\n\n{}\n", command.get_about().unwrap_or_default());
    let mut own = String::new();
    flags(&mut own, command, false);
    if !own.is_empty() {
        let _ = write!(page, "\n{own}");
    }
    let further = command.get_subcommands().filter(|command| command.get_name() != "help");
    for command in further {
        section(page, command, &format!("{name} "));
    }
}

fn flags(page: &mut String, command: &Command, global: bool) {
    let args: Vec<_> = command
        .get_arguments()
        .filter(|arg| {
            arg.is_global_set() == global && !matches!(arg.get_id().as_str(), "help" | "version")
        })
        .collect();
    if args.is_empty() {
        return;
    }
    page.push_str("| Flag | Meaning |\n|---|---|\n");
    for arg in args {
        let names = arg.get_value_names().unwrap_or_default();
        let value: Vec<String> = names.iter().map(ToString::to_string).collect();
        let value = if arg.get_action().takes_values() { value.join(" ") } else { String::new() };
        let flag = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long} {value}"),
            (None, Some(long)) => format!("--{long} {value}"),
            _ => value,
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "| `{}` | {} |", flag.trim(), help.replace('|', "\\|"));
    }
}

#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/bigfleetctl.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/reference/bigfleetctl.md is not current; UPDATE_REFERENCE=1 writes it"
    );
}
