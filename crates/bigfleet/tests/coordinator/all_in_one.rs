//! `bigfleet all-in-one`: every screen works on a laptop.

use tempfile::TempDir;
use tokio::process::Command;

use crate::rig::{
    binaries::{bigfleet, bigfleetctl},
    ports::port,
    process::{Process, get, sum, until},
};

struct Laptop {
    dir: TempDir,
    coordinator: String,
    shard: String,
    http: [String; 2],
}

impl Laptop {
    fn new() -> Self {
        let [coordinator, shard, one, two] = std::array::from_fn(|_| port());
        Self { dir: TempDir::new().unwrap(), coordinator, shard, http: [one, two] }
    }

    fn start(&self, more: &[&str]) -> Process {
        let mut args = vec![
            "all-in-one".to_owned(),
            format!("--coordinator-listen={}", self.coordinator),
            format!("--shard-listen={}", self.shard),
            format!("--raft-bind={}", port()),
            format!("--shard-metrics-addr={}", self.http[0]),
            format!("--coordinator-metrics-addr={}", self.http[1]),
            format!("--data-dir={}", self.dir.path().display()),
        ];
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        Process::spawn(&bigfleet(), &args, &self.dir.path().join("log"))
    }

    async fn until_ready(&self, process: &mut Process, http: &str) {
        until("a part that is ready", async || {
            assert!(process.is_running(), "{}", process.tail());
            get(http, "/readyz").await.filter(|(code, _)| *code == 200)
        })
        .await;
    }

    /// What `bigfleetctl` prints, once it succeeds and says all of this.
    async fn ctl(&self, args: &[&str], says: &[&str]) -> String {
        until("words of bigfleetctl", async || {
            let mut command = Command::new(bigfleetctl());
            command.env_clear().env("HOME", self.dir.path());
            command.args(["--coordinator", &self.coordinator]).args(args);
            let done = command.output().await.unwrap();
            let text = String::from_utf8(done.stdout).unwrap();
            let all = done.status.success() && says.iter().all(|word| text.contains(word));
            all.then_some(text)
        })
        .await
    }
}

#[tokio::test]
async fn every_screen_shows_the_laptops_fleet() {
    let laptop = Laptop::new();
    let mut process = laptop.start(&[]);
    for http in &laptop.http {
        laptop.until_ready(&mut process, http).await;
    }
    laptop.ctl(&["list-shards"], &["shard-0", &laptop.shard]).await;
    laptop.ctl(&["status"], &["shard-0"]).await;
    let machines = ["dev-gpu-0", "dev-gpu-7", "dev-cpu-0", "dev-cpu-7", "m6i.large"];
    laptop.ctl(&["machines"], &machines).await;
    laptop.ctl(&["raft-status"], &["node-1", "leader", "open"]).await;
    for (http, name) in laptop.http.iter().zip(["bigfleet_shard", "bigfleet_coordinator"]) {
        let metrics = get(http, "/metrics").await.unwrap().1;
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{metrics}");
    }
    for part in ["coord", "shard"] {
        assert!(laptop.dir.path().join(part).is_dir());
    }
    process.signal("TERM").await;
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.tail());
}

#[tokio::test]
async fn equal_addresses_are_one_server_and_none_seeds_nothing() {
    let laptop = Laptop::new();
    let laptop = Laptop { http: [laptop.http[0].clone(), laptop.http[0].clone()], ..laptop };
    let mut process = laptop.start(&["--seed=none", "--shard-id=desk", "--coordinator-id=alone"]);
    laptop.until_ready(&mut process, &laptop.http[0]).await;
    laptop.ctl(&["list-shards"], &["desk"]).await;
    let metrics = get(&laptop.http[0], "/metrics").await.unwrap().1;
    assert!(sum(&metrics, "bigfleet_coordinator_is_leader").is_some(), "{metrics}");
    assert!(sum(&metrics, "bigfleet_shard_cycle_duration_seconds_count").is_some(), "{metrics}");
    let machines = laptop.ctl(&["machines"], &[]).await;
    assert!(!machines.contains("dev-"), "{machines}");

    // A second one on the same directory goes, and says why.
    let other = Laptop::new();
    let data = format!("--data-dir={}", laptop.dir.path().display());
    let args: Vec<String> = [
        "all-in-one",
        &format!("--coordinator-listen={}", other.coordinator),
        &format!("--shard-listen={}", other.shard),
        &format!("--raft-bind={}", port()),
        "--shard-metrics-addr=0",
        "--coordinator-metrics-addr=0",
        &data,
    ]
    .map(str::to_owned)
    .into();
    let mut second = Process::spawn(&bigfleet(), &args, &other.dir.path().join("log"));
    assert_eq!(second.ended().await.code(), Some(1));
    assert!(second.tail().contains("another process uses this data directory"));
    process.signal("INT").await;
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.tail());
}
