//! The demo in a terminal: `bigfleetctl` beside it, and `--tui`.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};

use bigfleet_testkit::{
    binaries::binary,
    process::{Process, until_or},
};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::rig::{Demo, PATIENCE, processes};

/// The file that the demo says it wrote for `bigfleetctl`.
fn config(demo: &Demo) -> PathBuf {
    named(demo, "BIGFLEET_CONFIG=")
}

/// A file that the demo names behind a variable.
fn named(demo: &Demo, variable: &str) -> PathBuf {
    let printed = demo.printed();
    let named = printed.split_once(variable).map(|(_, rest)| rest);
    let path = named.and_then(|rest| rest.split_whitespace().next());
    path.unwrap_or_else(|| panic!("no file is named in\n{printed}")).into()
}

async fn ctl(demo: &Demo, args: &[&str]) -> Output {
    let mut command = Command::new(binary("bigfleetctl"));
    command.args(args).env("BIGFLEET_CONFIG", config(demo));
    command.output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn bigfleetctl_finds_the_fleet_by_the_file_that_the_demo_names() {
    let mut demo = Demo::start(&[]);
    demo.until_up().await;
    demo.until_at_rest().await;
    for (args, parts) in [
        (vec!["top", "--once"], ["shard-0", "shard-1"]),
        (vec!["status"], ["coordinator-0", "shard-1"]),
        (vec!["needs", "--shard=shard-1"], ["cluster-c", "100000"]),
        (vec!["decisions", "--shard", "shard-0", "-o", "wide"], ["Bootstrap", "cluster-a"]),
    ] {
        let output = ctl(&demo, &args).await;
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{args:?}: {printed}{}", text(&output.stderr));
        for part in parts {
            assert!(printed.contains(part), "{args:?}: {part:?} is not in\n{printed}");
        }
    }
    explains_pods(&demo).await;
    follows(&demo).await;
    brakes(&mut demo).await;
    demo.process.signal("INT").await;
    assert!(demo.process.ended().await.success(), "{}", demo.process.tail());
    demo.left_nothing().await;
}

/// The questions of the README: why a pod waits is told by its own cluster alone, and by the
/// engine in the same words.
async fn explains_pods(demo: &Demo) {
    // With its other work more than there is, and batch alone goes short.
    demand(demo, "batch", 40).await;
    let listed = until_or(&|| "a pod of C waits".to_owned(), PATIENCE, &mut async || {
        let listed = kubectl(demo, &["why"]).await;
        listed.contains("waits: PriorityStarved").then_some(listed)
    })
    .await;
    let line = listed.lines().find(|line| line.contains("waits: PriorityStarved")).unwrap();
    let mut words = line.split_whitespace();
    let pod = [words.next().unwrap(), words.next().unwrap()].join("/");
    let why = kubectl(demo, &["why", &pod]).await;
    assert!(why.contains(&format!("Pod:        {pod}: waits: PriorityStarved")), "{why}");
    let output = ctl(demo, &["explain", "--cluster", "cluster-c"]).await;
    let explained = text(&output.stdout);
    let failed = text(&output.stderr);
    assert!(explained.contains("UNMET: PRIORITY_STARVED"), "{explained}{failed}");
    // What to do.
    for told in [why, explained] {
        assert!(told.contains("matching machines exist but went to needs ahead of it"), "{told}");
    }
    demand(demo, "critical", 2).await;
    until_or(&|| "the need of what is critical".to_owned(), PATIENCE, &mut async || {
        kubectl(demo, &["needs"]).await.contains("1000000").then_some(())
    })
    .await;
    for tier in ["critical", "batch"] {
        demand(demo, tier, 0).await;
    }
}

async fn demand(demo: &Demo, tier: &str, level: u32) {
    let body = format!(r#"{{"workspace": "c", "level": {level}, "tier": "{tier}"}}"#);
    assert_eq!(demo.post("/api/demand", &body).await.status, 202);
}

/// What the plugin prints of cluster C.
async fn kubectl(demo: &Demo, args: &[&str]) -> String {
    let mut command = Command::new(binary("kubectl-bigfleet"));
    let named = named(demo, "KUBECONFIG=");
    let output = command.arg("--context=cluster-c").args(args).env("KUBECONFIG", named).output();
    let output = output.await.unwrap();
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// What is decided is told as it is decided.
async fn follows(demo: &Demo) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("printed");
    let args = ["decisions", "-f", "--shard=shard-0", "--tail=1"].map(str::to_owned);
    let named = config(demo);
    let variables = [("BIGFLEET_CONFIG", named.to_str().unwrap())];
    let (log, printed) = (dir.path().join("log"), File::create(&path).unwrap());
    let program = binary("bigfleetctl");
    let mut following = Process::spawn_heard(&program, &args, &variables, &log, printed.into());
    let told = || fs::read_to_string(&path).unwrap();
    until_or(&told, PATIENCE, &mut async || {
        assert!(following.is_running(), "{}", following.tail());
        (!told().is_empty()).then_some(())
    })
    .await;
    let before = told().len();
    let body = r#"{"workspace": "b", "level": 2, "tier": "critical"}"#;
    assert_eq!(demo.post("/api/demand", body).await.status, 202);
    until_or(&told, PATIENCE, &mut async || {
        assert!(following.is_running(), "{}", following.tail());
        told()[before..].contains("cluster-b").then_some(())
    })
    .await;
    following.kill().await;
}

/// Who may only look cannot brake; `admin` can.
async fn brakes(demo: &mut Demo) {
    let pause = ["pause", "--all", "--yes", "--reason=a test"];
    let refused = ctl(demo, &pause).await;
    assert!(!refused.status.success(), "{}", text(&refused.stdout));
    for (command, mode) in [("pause", "PAUSED"), ("resume", "ACTIVE")] {
        let args = ["--context=admin", command, "--all", "--yes", "--reason=a test"];
        let output = ctl(demo, &args).await;
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        demo.until(mode, |state| {
            let shards = state["shards"].as_array().unwrap();
            shards.iter().all(|shard| shard["mode"] == mode).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_terminal_shows_the_fleet_plays_and_gives_the_terminal_back() {
    let dir = TempDir::new().unwrap();
    let home = dir.path().join("tmp");
    fs::create_dir(&home).unwrap();
    let seen = dir.path().join("seen");
    let demo = format!(
        "stty rows 45 cols 150; exec {} demo --tui --listen=127.0.0.1:0",
        binary("bigfleet").display()
    );
    // A terminal of its own.
    let mut script = Command::new("script");
    script.args(["--quiet", "--flush", "--return", "--command", &demo, "/dev/null"]);
    script.env("TMPDIR", &home).env("TERM", "xterm-256color").kill_on_drop(true);
    let printed = File::create(&seen).unwrap();
    let mut script = script.stdin(Stdio::piped()).stdout(printed).spawn().unwrap();
    let mut keys = script.stdin.take().unwrap();
    let screen = || fs::read_to_string(&seen).map(|text| shown(&text)).unwrap_or_default();
    let until = async |part: &'static str, child: &mut tokio::process::Child| {
        until_or(&|| format!("{part:?} in {}", screen()), PATIENCE, &mut async || {
            assert!(child.try_wait().unwrap().is_none(), "it ended: {}", screen());
            screen().contains(part).then_some(())
        })
        .await;
    };
    for part in ["BigFleet demo", "Kill switch", "cluster-c", "reset: passed"] {
        until(part, &mut script).await;
    }
    // Pressed again by whoever pressed in the moment in which the reset ended.
    until_or(&|| format!("a scenario in {}", screen()), PATIENCE, &mut async || {
        assert!(script.try_wait().unwrap().is_none(), "it ended: {}", screen());
        if screen().contains("move: running") {
            return Some(());
        }
        keys.write_all(b"\r").await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        None
    })
    .await;
    keys.write_all(b"q").await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, script.wait()).await.expect("it ends").unwrap();
    assert!(ended.success(), "{}", screen());
    let raw = fs::read_to_string(&seen).unwrap();
    assert!(
        raw.contains("\u{1b}[?1049h") && raw.contains("\u{1b}[?1049l"),
        "the screen is given back"
    );
    until_or(&|| format!("{:?} are gone", processes(&home)), PATIENCE, &mut async || {
        let empty = fs::read_dir(&home).unwrap().next().is_none();
        (empty && processes(&home).is_empty()).then_some(())
    })
    .await;
}

/// What a terminal of 45 lines would show: only what changes is written, at its place.
fn shown(raw: &str) -> String {
    let mut lines = vec![vec![' '; 150]; 45];
    let (mut row, mut column) = (0, 0);
    let mut rest = raw.chars();
    while let Some(next) = rest.next() {
        if next != '\u{1b}' {
            if let Some(cell) = lines.get_mut(row).and_then(|line| line.get_mut(column)) {
                *cell = next;
            }
            column += 1;
            continue;
        }
        let mut order = String::new();
        let letter = rest.by_ref().find(|it| {
            order.push(*it);
            it.is_ascii_alphabetic()
        });
        let place = order.trim_start_matches('[').trim_end_matches('H').split_once(';');
        if letter == Some('H')
            && let Some((line, at)) = place
            && let (Ok(line), Ok(at)) = (line.parse::<usize>(), at.parse::<usize>())
        {
            (row, column) = (line - 1, at - 1);
        }
    }
    lines.iter().map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
}
