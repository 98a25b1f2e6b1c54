//! A target that the suite runs itself.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use bigfleet_wire::v1alpha1::ListFilter;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::TargetCommand;
use crate::{Error, tls::Credentials, wire::Wire};

/// Time to start and answer the first call.
const BOOT: Duration = Duration::from_secs(30);

/// Another process may take the free port first; then another one is tried.
const ATTEMPTS: u32 = 3;

/// A running target with a state directory of its own.
#[derive(Debug)]
pub struct Instance {
    command: TargetCommand,
    credentials: Arc<Credentials>,
    scale: f64,
    seed: u64,
    dir: TempDir,
    running: Running,
}

/// A process and how to reach it.
#[derive(Debug)]
struct Running {
    child: Child,
    wire: Wire,
    metrics: String,
}

impl Instance {
    /// Boots the command on a free port and an empty state.
    pub async fn boot(
        command: &TargetCommand,
        credentials: Arc<Credentials>,
        seed: u64,
        scale: f64,
    ) -> Result<Self, Error> {
        let dir = TempDir::new().map_err(Error::Temporary)?;
        let running = start(command, &credentials, dir.path(), seed, scale).await?;
        Ok(Self { command: command.clone(), credentials, scale, seed, dir, running })
    }

    /// The road to it.
    #[must_use]
    pub fn wire(&self) -> &Wire {
        &self.running.wire
    }

    /// Where it serves metrics, if its command has a place for that.
    #[must_use]
    pub fn metrics(&self) -> Option<&str> {
        self.command.tells_metrics().then_some(&*self.running.metrics)
    }

    /// Kills it as `kill -9` does and waits until it is gone.
    pub async fn kill(&mut self) {
        // It can only fail when the process has gone by itself.
        let _ = self.running.child.kill().await;
    }

    /// Kills it, and boots it again on the same state and another port.
    pub async fn reboot(&mut self) -> Result<(), Error> {
        self.kill().await;
        let state = self.dir.path();
        self.running =
            start(&self.command, &self.credentials, state, self.seed, self.scale).await?;
        Ok(())
    }

    /// Kills it, throws its state away and boots it again.
    pub async fn wipe(&mut self) -> Result<(), Error> {
        self.kill().await;
        self.dir = TempDir::new().map_err(Error::Temporary)?;
        self.reboot().await
    }

    /// Memory in use, where the system tells it.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.running.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    }

    /// The state directory.
    #[must_use]
    pub fn state(&self) -> std::path::PathBuf {
        self.dir.path().join("state")
    }
}

async fn start(
    command: &TargetCommand,
    credentials: &Arc<Credentials>,
    dir: &Path,
    seed: u64,
    scale: f64,
) -> Result<Running, Error> {
    let mut failure = None;
    for _ in 0..ATTEMPTS {
        match attempt(command, credentials, dir, seed, scale).await {
            Ok(started) => return Ok(started),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::Usage("no attempt to boot was made".into())))
}

async fn attempt(
    command: &TargetCommand,
    credentials: &Arc<Credentials>,
    dir: &Path,
    seed: u64,
    scale: f64,
) -> Result<Running, Error> {
    let failed = |problem: String| Error::Boot { program: command.program().to_owned(), problem };
    let addr = free_address().map_err(|error| failed(error.to_string()))?;
    let metrics = free_address().map_err(|error| failed(error.to_string()))?;
    let words = command.fill(&addr, &metrics, &dir.join("state"), seed);
    let log_path = dir.join("log");
    let log = fs::File::create(&log_path).map_err(|error| failed(error.to_string()))?;
    let to_log = || log.try_clone().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(to_log())
        .stderr(to_log())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let wire = Wire::new(addr, credentials.clone(), scale);
    let deadline = Instant::now() + BOOT.mul_f64(scale.max(1.0));
    loop {
        // Each look dials afresh: a road that failed waits longer and longer.
        let first = ListFilter { max_results: 1, ..Default::default() };
        let problem = match wire.afresh().list(first).await {
            Ok(_) => return Ok(Running { child, wire, metrics }),
            Err(status) => status.message().to_owned(),
        };
        if let Ok(Some(status)) = child.try_wait() {
            return Err(failed(format!("it ended with {status}: {}", tail(&log_path))));
        }
        if Instant::now() > deadline {
            let tail = tail(&log_path);
            return Err(failed(format!("it does not answer ({problem}); its output: {tail}")));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn free_address() -> std::io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.to_string())
}

/// The end of the output, for whoever must find out why it does not start.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}
