//! Runs a page.

use std::{
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    expect::matches,
    parse::{Session, Step},
    ports::Ports,
};

/// How long a command may take, and how long one is repeated.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks.
const POLL: Duration = Duration::from_millis(100);

/// What did not come as the page says.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: $ {command}\n{problem}\n--- printed\n{printed}\n--- still running\n{jobs}")]
pub struct Wrong {
    line: usize,
    command: String,
    problem: String,
    printed: String,
    jobs: String,
}

/// Runs the steps of one page in a folder of its own, which goes with it.
#[derive(Debug)]
pub struct Runner {
    // Fields drop in this order: processes must end before their folder goes.
    jobs: Vec<Job>,
    ports: Ports,
    path: OsString,
    variables: Vec<(String, OsString)>,
    folder: TempDir,
}

/// A command that stays.
#[derive(Debug)]
struct Job {
    command: String,
    process: Option<Child>,
    log: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Runner {
    /// A runner that finds programs in these folders first.
    pub fn new(programs: &[PathBuf]) -> std::io::Result<Self> {
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let all = programs.iter().cloned().chain(std::env::split_paths(&rest));
        let path = std::env::join_paths(all).map_err(std::io::Error::other)?;
        let folder = TempDir::with_prefix("bigfleet-docs-")?;
        Ok(Self { jobs: Vec::new(), ports: Ports::new(), path, variables: Vec::new(), folder })
    }

    /// Sets a variable for all commands.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// The folder in which commands run.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Does one step.
    pub fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        match step {
            Step::File { name, text } => {
                let text = self.ports.here(text);
                let written = std::fs::write(self.folder.path().join(name), text);
                written.map_err(|error| self.wrong(0, name, &error.to_string(), ""))
            }
            Step::Run(session) => self.run(session),
        }
    }

    fn run(&mut self, session: &Session) -> Result<(), Wrong> {
        let command = session.command.as_str();
        let wrong = |this: &Self, problem: &str, printed: &str| {
            Err(this.wrong(session.line, command, problem, printed))
        };
        if let Some(job) = command.strip_prefix("kill %") {
            return match self.end(job) {
                Ok(()) => Ok(()),
                Err(problem) => wrong(self, &problem, ""),
            };
        }
        if command == "wait" {
            return match self.running() {
                None => Ok(()),
                Some(job) => wrong(self, &format!("waits for ever: {job} was not ended"), ""),
            };
        }
        if let Some(stays) = command.strip_suffix('&') {
            return match self.stay(stays.trim()) {
                Ok(()) => Ok(()),
                Err(error) => wrong(self, &error.to_string(), ""),
            };
        }
        let begun = Instant::now();
        loop {
            let (status, printed) = match self.once(command) {
                Ok(answer) => answer,
                Err(error) => return wrong(self, &error.to_string(), ""),
            };
            let printed = self.ports.in_page(&printed);
            let problem = match status {
                None => "did not end in time".to_owned(),
                Some(status) if status.success() == session.fails => format!("ended with {status}"),
                Some(_) if session.expected.is_empty() => return Ok(()),
                Some(_) if matches(&session.expected, &printed) => return Ok(()),
                Some(_) => "did not print what the page shows".to_owned(),
            };
            if !session.eventually || begun.elapsed() > PATIENCE {
                return wrong(self, &problem, &printed);
            }
            sleep(POLL);
        }
    }

    fn shell(&mut self, command: &str, output: &Path) -> std::io::Result<Command> {
        let file = File::create(output)?;
        let mut shell = Command::new("sh");
        let here = self.ports.here(command);
        // The shell becomes the command where it can: to end one is to end the other.
        let exec = if one_program(&here) { "exec " } else { "" };
        shell.args(["-c", &format!("{exec}{here}")]).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("BIGFLEET_") {
                shell.env_remove(name);
            }
        }
        shell.envs(self.ports.variables(command.split(" | ").next().unwrap_or_default()));
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        shell.env("PATH", &self.path).env("HOME", self.folder.path()).env("NO_COLOR", "1");
        shell.env("XDG_CONFIG_HOME", self.folder.path().join(".config"));
        shell.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        Ok(shell)
    }

    fn once(&mut self, command: &str) -> std::io::Result<(Option<ExitStatus>, String)> {
        let output = self.folder.path().join(".output");
        let mut process = self.shell(command, &output)?.spawn()?;
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = process.try_wait()? {
                break Some(status);
            }
            if begun.elapsed() > PATIENCE {
                process.kill()?;
                process.wait()?;
                break None;
            }
            sleep(Duration::from_millis(10));
        };
        Ok((status, std::fs::read_to_string(&output).unwrap_or_default()))
    }

    fn stay(&mut self, command: &str) -> std::io::Result<()> {
        if !one_program(command) {
            return Err(std::io::Error::other("what stays must be one program"));
        }
        let log = self.folder.path().join(format!(".job-{}", self.jobs.len() + 1));
        let process = Some(self.shell(command, &log)?.spawn()?);
        self.jobs.push(Job { command: command.to_owned(), process, log });
        Ok(())
    }

    /// Asks a job to end and waits for it.
    fn end(&mut self, job: &str) -> Result<(), String> {
        let number: usize = job.trim().parse().map_err(|_| "no number of a job".to_owned())?;
        let job = number.checked_sub(1).and_then(|index| self.jobs.get_mut(index));
        let process = job.and_then(|job| job.process.as_mut()).ok_or("no such job")?;
        let asked = Command::new("kill").arg(process.id().to_string()).status();
        asked.map_err(|error| error.to_string())?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if process.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Ok(());
            }
            sleep(POLL);
        }
        Err("did not end in time".to_owned())
    }

    /// A job that nobody has ended. Who was asked to end was waited for.
    fn running(&mut self) -> Option<String> {
        self.jobs.iter_mut().find_map(|job| {
            let ended = job.process.as_mut().map(std::process::Child::try_wait);
            matches!(ended, Some(Ok(None))).then(|| job.command.clone())
        })
    }

    fn wrong(&self, line: usize, command: &str, problem: &str, printed: &str) -> Wrong {
        let jobs = self.jobs.iter().map(|job| {
            let log = std::fs::read_to_string(&job.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(20)..].join("\n");
            format!("$ {} &\n{tail}", job.command)
        });
        Wrong {
            line,
            command: command.to_owned(),
            problem: problem.to_owned(),
            printed: printed.to_owned(),
            jobs: jobs.collect::<Vec<_>>().join("\n"),
        }
    }
}

/// Whether a shell has nothing else to do for this command.
fn one_program(command: &str) -> bool {
    !command.contains(['|', ';', '&'])
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{super::steps, *};
    use crate::page::Page;

    fn run(console: &str) -> Result<(), Wrong> {
        let page = Page::of(PathBuf::from("x.md"), console.to_owned());
        let mut runner = Runner::new(&[]).unwrap();
        steps(&page).unwrap().iter().try_for_each(|step| runner.step(step))
    }

    #[test]
    fn what_a_page_shows_is_what_is_printed() {
        run("```text file=a\nb\n```\n\n```console\n$ cat a\nb\n$ echo :7780\n:7780\n```\n")
            .unwrap();
        run("```console fails\n$ echo no; false\nno\n```\n").unwrap();
        let wrong = run("```console\n$ echo b\nc\n```\n").unwrap_err().to_string();
        assert!(wrong.contains("line 1: $ echo b\ndid not print"), "{wrong}");
        assert!(run("```console\n$ false\n```\n").is_err());
        assert!(run("```console fails\n$ true\n```\n").is_err());
    }

    #[test]
    fn what_stays_is_ended() {
        run("```console\n$ sleep 1000 &\n$ kill %1\n$ wait\n```\n").unwrap();
        assert!(run("```console\n$ sleep 1000 &\n$ wait\n```\n").is_err());
        assert!(run("```console\n$ kill %1\n```\n").is_err());
        assert!(run("```console\n$ sleep 1 | cat &\n```\n").is_err());
    }
}
