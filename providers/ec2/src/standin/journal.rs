//! What outlives a restart: one line of JSON per change. No flush to the disk: it is
//! processes that are killed in tests, not machines.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{Error, hosts::Host, world::Command};

/// One change.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The whole instance, as it is now.
    Host(Box<Host>),
    /// A command that was sent, with what will come of it. Never its script.
    Command(Command),
    /// An event.
    Message(u64, String),
    /// An event that somebody took.
    Taken(u64),
}

/// Everything that a journal held.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) commands: BTreeMap<String, Command>,
    pub(super) messages: BTreeMap<u64, String>,
}

impl Memory {
    fn take(&mut self, line: Line) {
        match line {
            Line::Host(host) => drop(self.hosts.insert(host.id.clone(), *host)),
            Line::Command(command) => drop(self.commands.insert(command.id.clone(), command)),
            Line::Message(number, body) => drop(self.messages.insert(number, body)),
            Line::Taken(number) => drop(self.messages.remove(&number)),
        }
    }
}

/// The file, or nothing at all.
#[derive(Debug)]
pub(super) struct Journal {
    file: Option<File>,
}

impl Journal {
    /// Reads what is there; a torn last line is cut off.
    pub(super) fn open(path: Option<&Path>) -> Result<(Self, Memory), Error> {
        let mut memory = Memory::default();
        let Some(path) = path else { return Ok((Self { file: None }, memory)) };
        let io = |error| Error::Io { what: path.display().to_string(), error };
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(io)?;
        }
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(io(error)),
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (number, line) in text[..whole].lines().enumerate() {
            let line = serde_json::from_str(line).map_err(|error| Error::Journal {
                path: path.display().to_string(),
                line: number + 1,
                problem: error.to_string(),
            })?;
            memory.take(line);
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(io)?;
        file.set_len(whole as u64).map_err(io)?;
        Ok((Self { file: Some(file) }, memory))
    }

    /// Remembers a change, in one write.
    pub(super) fn write(&mut self, line: &Line) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            file.write_all(&bytes)
        });
        if let Err(error) = written {
            tracing::error!(%error, "the stand-in cannot remember");
        }
    }
}
