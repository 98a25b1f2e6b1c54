//! A child process that logs into a file, so that no pipe fills up and what it
//! said outlives it. Whatever fails here fails the test.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

/// Nothing here takes that long; what does has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A child, killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it; its log is appended to.
    #[must_use]
    pub fn spawn(program: &Path, args: &[String], log: &Path) -> Self {
        Self::spawn_with(program, args, &[], log)
    }

    /// Starts it in an environment with these variables besides.
    #[must_use]
    pub fn spawn_with(
        program: &Path,
        args: &[String],
        variables: &[(&str, &str)],
        log: &Path,
    ) -> Self {
        Self::spawn_heard(program, args, variables, log, Stdio::null())
    }

    /// The same, with what it prints sent there.
    #[must_use]
    pub fn spawn_heard(
        program: &Path,
        args: &[String],
        variables: &[(&str, &str)],
        log: &Path,
        printed: Stdio,
    ) -> Self {
        let file = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(program);
        // What tests are told by is not for the binaries.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BIGFLEET_")) {
            command.env_remove(name);
        }
        command.args(args).envs(variables.iter().copied());
        let child = command.stdout(printed).stderr(file).kill_on_drop(true);
        Self { child: child.spawn().unwrap(), log: log.to_owned() }
    }

    /// SIGKILL, and gone when this returns.
    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends a signal by its name.
    pub async fn signal(&self, name: &str) {
        let id = self.child.id().expect("not reaped yet").to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().await.unwrap();
        assert!(sent.success(), "kill -s {name} {id}");
    }

    /// Memory that it has in use, where the system tells.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    }

    /// Time that processors have spent on it, where the system tells.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        // Hundredths of a second, whatever the kernel counts in.
        const TICKS: f64 = 100.0;
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()?)).ok()?;
        // After the name, which may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        Some((ticks()? + ticks()?) / TICKS)
    }

    /// How it ended.
    pub async fn ended(&mut self) -> ExitStatus {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("does not end: {}", self.tail())).unwrap()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Everything it said, those before it in the same file included.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The end of its log.
    #[must_use]
    pub fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

/// Looks until there is something to see.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    until_or(&|| what.to_owned(), PATIENCE, &mut look).await
}

/// Looks until there is something to see, and tells more if there never is.
pub async fn until_or<T>(
    what: &dyn Fn() -> String,
    within: Duration,
    look: &mut impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {}", what());
        sleep(Duration::from_millis(20)).await;
    }
}

/// Status and body of a GET; none while nobody answers.
pub async fn get(addr: &str, path: &str) -> Option<(u16, String)> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    http(addr, &request).await
}

async fn http(addr: &str, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(addr).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}

/// Sum of a metric over all its labels; none if it is not there.
#[must_use]
pub fn sum(metrics: &str, name: &str) -> Option<f64> {
    sum_of(metrics, name, &[])
}

/// Sum of a metric over the labels that hold all of `with`; none if there are none.
#[must_use]
pub fn sum_of(metrics: &str, name: &str, with: &[&str]) -> Option<f64> {
    let of_name =
        |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
    let labelled = |line: &&str| with.iter().all(|part| line.contains(part));
    let lines = metrics.lines().filter(of_name).filter(labelled);
    let values = lines.filter_map(|line| line.rsplit(' ').next());
    let values: Vec<f64> = values.filter_map(|value| value.parse().ok()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// The usual flags but for those given, and those given.
pub fn flags<const N: usize>(
    usual: [(&'static str, String); N],
    more: &[&str],
) -> impl Iterator<Item = String> {
    let is = |flag: &str, arg: &&str| arg.split('=').next() == Some(flag);
    usual
        .into_iter()
        .filter(move |(flag, _)| !more.iter().any(|arg| is(flag, arg)))
        .map(|(flag, value)| format!("{flag}={value}"))
        .chain(more.iter().map(|&arg| arg.to_owned()))
}
