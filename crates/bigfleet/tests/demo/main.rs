//! `bigfleet demo` as a person starts it: scenarios pass, and nothing is left behind however it
//! ends.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{fs, path::Path, time::Duration};

use bigfleet_testkit::{
    binaries::binary,
    process::{Process, get, until, until_or},
};
use tempfile::TempDir;

/// A scenario takes seconds, and minutes where the machine is busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// A demo whose files are all under one directory.
struct Demo {
    dir: TempDir,
    process: Process,
}

impl Demo {
    fn start(args: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let home = dir.path().join("tmp");
        fs::create_dir(&home).unwrap();
        let args: Vec<String> =
            std::iter::once("demo").chain(args.iter().copied()).map(str::to_owned).collect();
        let variables = [("TMPDIR", home.to_str().unwrap())];
        let log = dir.path().join("log");
        let process = Process::spawn_with(&binary("bigfleet"), &args, &variables, &log);
        Self { dir, process }
    }

    fn home(&self) -> std::path::PathBuf {
        self.dir.path().join("tmp")
    }

    /// All processes of it are up.
    async fn until_up(&mut self) {
        let home = self.home();
        let tail = || format!("eight processes: {:?}", processes(&home));
        until_or(&tail, PATIENCE, &mut async || {
            assert!(self.process.is_running(), "{}", self.process.tail());
            // Three replicas, two shards, the keeper; the demo itself names no directory.
            (processes(&self.home()).len() == 6).then_some(())
        })
        .await;
    }

    async fn left_nothing(&self) {
        let home = self.home();
        let left = || {
            let files: Vec<_> = fs::read_dir(&home).unwrap().map(|it| it.unwrap().path()).collect();
            format!("{:?} and {files:?} are gone", processes(&home))
        };
        until_or(&left, PATIENCE, &mut async || {
            let empty = fs::read_dir(&home).unwrap().next().is_none();
            (empty && processes(&home).is_empty()).then_some(())
        })
        .await;
    }
}

/// Command lines that name the directory.
fn processes(home: &Path) -> Vec<String> {
    let home = home.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(home)).collect()
}

#[tokio::test]
async fn a_scenario_passes_headless_and_leaves_nothing() {
    let mut demo = Demo::start(&["--scenario=move", "--headless", "--listen=127.0.0.1:0"]);
    let ended = tokio::time::timeout(PATIENCE, async {
        while demo.process.is_running() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        demo.process.ended().await
    });
    let ended = ended.await.expect("it ends");
    assert!(ended.success(), "{}", demo.process.tail());
    demo.left_nothing().await;
}

#[tokio::test]
async fn an_interrupt_leaves_nothing() {
    let mut demo = Demo::start(&["--listen=127.0.0.1:0"]);
    demo.until_up().await;
    demo.process.signal("INT").await;
    assert!(demo.process.ended().await.success(), "{}", demo.process.tail());
    demo.left_nothing().await;
}

#[tokio::test]
async fn a_kill_leaves_nothing() {
    let mut demo = Demo::start(&["--listen=127.0.0.1:0"]);
    demo.until_up().await;
    demo.process.kill().await;
    demo.left_nothing().await;
}

#[tokio::test]
async fn the_guide_shows_the_fleet_and_refuses_what_it_must() {
    let addr = bigfleet_testkit::ports::port();
    let mut demo = Demo::start(&[&format!("--listen={addr}")]);
    let tail = || "the guide answers".to_owned();
    let (status, body) = until_or(&tail, PATIENCE, &mut async || {
        assert!(demo.process.is_running(), "{}", demo.process.tail());
        get(&addr, "/api/state").await
    })
    .await;
    assert_eq!(status, 200, "{body}");
    let state: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(state["scenarios"].as_array().unwrap().len(), 15);
    assert_eq!(state["coordinators"].as_array().unwrap().len(), 3);
    assert_eq!(state["workspaces"].as_array().unwrap().len(), 3);
    let machines: i64 = state["fleet"]["tiers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tier| tier["total"].as_i64().unwrap())
        .sum();
    assert_eq!(machines, 152);
    let page = until("the page", async || get(&addr, "/").await).await;
    assert_eq!(page.0, 200);
    demo.process.signal("TERM").await;
    assert!(demo.process.ended().await.success());
    demo.left_nothing().await;
}

#[tokio::test]
async fn flags_that_must_not_be_are_refused() {
    for (arg, problem) in [
        ("--scenario=mov", "--scenario: \"mov\" is none"),
        ("--listen=0.0.0.0:8090", "--listen: 0.0.0.0:8090 is not loopback"),
    ] {
        let mut demo = Demo::start(&[arg]);
        assert_eq!(demo.process.ended().await.code(), Some(2), "{arg}");
        assert!(demo.process.log().contains(problem), "{}", demo.process.log());
        demo.left_nothing().await;
    }
}
