//! Flags, configuration, exit codes.

use std::{fs, process::Command};

use crate::rig::{Ctl, coordinator, lead};

#[tokio::test]
async fn help_and_version_succeed_and_wrong_usage_is_two() {
    let ctl = Ctl::bare();
    for args in [&["--help"][..], &["help"], &["version"], &["--version"], &["pause", "--help"]] {
        ctl.run(args).await.ok();
    }
    for args in [
        &[][..],
        &["no-such-command"],
        &["list-shards", "--no-such-flag"],
        &["list-shards", "-o", "xml"],
        &["list-shards", "--timeout", "10"],
        &["list-shards", "--timeout", "0s"],
        &["assign-domain", "--key", "k", "--value", "v"],
        &["unassign-domain", "--key", "k"],
        &["remove-shard"],
        &["set-quota", "--provider", "p", "--region", "r"],
        &["set-quota", "--provider", "p", "--region", "r", "--slice", "s=-1"],
        &["set-quota", "--provider", "p", "--region", "r", "--slice", "s=1", "--remove"],
        &["move-domain", "--key", "k", "--value", "v", "--from", "a"],
        &["move-cluster", "--cluster", "c"],
        &["raft-remove"],
        &["snapshot"],
        &["snapshot", "restore", "file"],
        &["snapshot", "restore", "file", "--data-dir", "d", "--node-id", "n"],
        &["pause", "--all"],
        &["pause", "--reason", "x"],
        &["pause", "--reason", "", "--all"],
        &["pause", "--reason", "x", "--all", "--shard", "s"],
        &["whatif"],
        &["explain"],
        &["machines", "--state", "busy"],
        &["top"],
        &["completion", "cmd.exe"],
    ] {
        let done = ctl.run(args).await;
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert!(!done.err.is_empty() && done.out.is_empty(), "{args:?}: {done:?}");
    }
    assert_eq!(
        ctl.run(&["version"]).await.ok(),
        concat!("bigfleetctl ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[tokio::test]
async fn completion_knows_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Ctl::bare().run(&["completion", shell]).await.ok();
        assert!(script.contains("list-shard-reports"), "{shell}");
    }
}

/// As after `2>&1 | head`.
#[test]
fn who_has_closed_the_pipe_is_told_nothing() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleetctl"));
    command.args(["completion", "bash"]).stderr(writer.try_clone().unwrap()).stdout(writer);
    assert_eq!(command.status().unwrap().code(), Some(1), "it ends, and does not panic");
}

#[tokio::test]
async fn bad_addresses_and_half_sets_of_certificates_fail() {
    let ctl = Ctl::bare();
    let error = ctl.run(&["list-shards", "--coordinator", "nonsense"]).await.failed(1);
    assert!(error.contains("host:port"), "{error}");
    let error = ctl.run(&["list-shards", "--tls-cert", "x"]).await.failed(1);
    assert!(error.contains("--tls-key and --tls-ca missing"), "{error}");
    let error = ctl.run(&["list-shards", "--require-tls"]).await.failed(1);
    assert!(error.contains("--require-tls"), "{error}");
}

#[tokio::test]
async fn contexts_name_the_fleet() {
    let (one, two) = (coordinator().await, coordinator().await);
    lead(&one, &[("s-1", "h:1")]);
    lead(&two, &[("s-2", "h:2")]);
    let ctl = Ctl::bare();
    let folder = ctl.path(".config/bigfleet");
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "currentContext: one\ncontexts:\n  one:\n    coordinator: ['{}']\n  two:\n    coordinator: \
         ['{}']\n    output: json\n",
        one.addr(),
        two.addr()
    );
    fs::write(folder.join("config.yaml"), &text).unwrap();
    assert!(ctl.run(&["list-shards"]).await.ok().contains("\ns-1 "));
    let json = ctl.run(&["list-shards", "--context", "two"]).await.ok();
    assert!(json.contains("\"shard\": \"s-2\""), "{json}");
    let table = ctl.run(&["--context", "two", "-o", "table", "list-shards"]).await.ok();
    assert!(table.starts_with("SHARD  ADDRESS"), "{table}");
    assert!(ctl.run(&["list-shards", "--coordinator", two.addr()]).await.ok().contains("\ns-2 "));
    let error = ctl.run(&["list-shards", "--context", "three"]).await.failed(2);
    assert!(error.contains("known: one, two"), "{error}");

    fs::write(folder.join("config.yaml"), text.replace("currentContext", "current")).unwrap();
    let error = ctl.run(&["list-shards"]).await.failed(1);
    assert!(error.contains("config.yaml") && error.contains("line 1"), "{error}");
    ctl.run(&["version"]).await.ok();
}
