//! A demo whose files are all under one directory, and a client for its guide.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use bigfleet_testkit::{
    binaries::binary,
    ports::port,
    process::{Process, until_or},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A scenario takes seconds, and minutes where the machine is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A demo.
pub(crate) struct Demo {
    dir: TempDir,
    pub(crate) process: Process,
    /// Where its guide is.
    pub(crate) addr: String,
}

/// What the guide answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Demo {
    /// Starts one with these flags, and a port of its own.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same in an environment with these variables besides.
    pub(crate) fn start_with(args: &[&str], more: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        let home = dir.path().join("tmp");
        fs::create_dir(&home).unwrap();
        let addr = port();
        let listen = format!("--listen={addr}");
        let args: Vec<String> =
            ["demo", &listen].iter().chain(args).map(|arg| (*arg).to_owned()).collect();
        let variables = [&[("TMPDIR", home.to_str().unwrap())], more].concat();
        let log = dir.path().join("log");
        let printed = File::create(dir.path().join("printed")).unwrap();
        let process =
            Process::spawn_heard(&binary("bigfleet"), &args, &variables, &log, printed.into());
        Self { dir, process, addr }
    }

    /// Where its files are, while it lives.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// What it has printed.
    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(self.dir.path().join("printed")).unwrap()
    }

    /// The guide's state as soon as it answers.
    pub(crate) async fn until_up(&mut self) -> Value {
        until_or(&|| "the guide answers".to_owned(), PATIENCE, &mut async || {
            assert!(self.process.is_running(), "{}", self.process.tail());
            call(&self.addr, "GET", "/api/state", &[], "").await
        })
        .await
        .json()
    }

    /// Looks at the state until it is so.
    pub(crate) async fn until<T>(&mut self, what: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        until_or(&|| what.to_owned(), PATIENCE, &mut async || {
            assert!(self.process.is_running(), "{}", self.process.tail());
            look(&self.get("/api/state").await.json())
        })
        .await
    }

    /// The baseline stands, and nothing is played.
    pub(crate) async fn until_at_rest(&mut self) {
        self.until("the baseline stands", |state| {
            let run = &state["run"];
            (run["name"] == "reset" && run["state"] == "passed").then_some(())
        })
        .await;
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        call(&self.addr, "GET", path, &[], "").await.expect("an answer")
    }

    /// A write as a page sends it; what comes too fast is sent again.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        loop {
            let kind = ["Content-Type: application/json"];
            let answer = call(&self.addr, "POST", path, &kind, body).await.expect("an answer");
            if answer.status != 429 {
                return answer;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Waits for its end as long as scenarios may take.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        until_or(&|| "it ends".to_owned(), PATIENCE, &mut async || {
            (!self.process.is_running()).then_some(())
        })
        .await;
        self.process.ended().await
    }

    /// No process, no file.
    pub(crate) async fn left_nothing(&self) {
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
pub(crate) fn processes(home: &Path) -> Vec<String> {
    let home = home.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(home)).collect()
}

/// One call; none while nobody answers.
pub(crate) async fn call(
    addr: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> Option<Answer> {
    let mut stream = open(addr, method, path, headers, body).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    let (head, text) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_lowercase(), text: text.to_owned() })
}

/// A call whose answer is still to be read.
pub(crate) async fn open(
    addr: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &str,
) -> Option<TcpStream> {
    let mut lines = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned()];
    if !headers.iter().any(|header| header.starts_with("Host:")) {
        lines.push(format!("Host: {addr}"));
    }
    lines.push(format!("Content-Length: {}", body.len()));
    lines.extend(headers.iter().map(|&header| header.to_owned()));
    let request = format!("{}\r\n\r\n{body}", lines.join("\r\n"));
    let mut stream = TcpStream::connect(addr).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    Some(stream)
}
