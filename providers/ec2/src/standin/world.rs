//! The truth.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{
    CATALOGUE, Error, Faults, Settings, ZONES,
    hosts::Host,
    journal::{Journal, Line},
};
use crate::slots::MACHINE_ID;

/// A command and what comes of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Command {
    pub(super) id: String,
    pub(super) host: String,
    /// When it ends.
    pub(super) ends: u64,
    pub(super) status: String,
    pub(super) output: String,
}

/// A refusal: code and message.
pub(super) type Refused = (&'static str, String);

/// Everything there is.
#[derive(Debug)]
pub(super) struct World {
    pub(super) faults: Faults,
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) commands: BTreeMap<String, Command>,
    pub(super) messages: BTreeMap<u64, Message>,
    pub(super) spot_prices: BTreeMap<(String, String), f64>,
    pub(super) list_prices: BTreeMap<String, f64>,
    /// Parts of blobs, by host and operation; in memory only.
    pub(super) parts: BTreeMap<(String, String), BTreeMap<usize, Vec<u8>>>,
    tokens: BTreeMap<String, String>,
    journal: Journal,
    numbers: u64,
    /// Calls of this second.
    calls: (u64, u32),
}

/// An event in the queue.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) body: String,
    /// Hidden until then, after somebody has received it.
    pub(super) hidden: u64,
}

/// One launch.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) token: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) spot: bool,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) parameters: String,
}

/// Milliseconds of the unix epoch.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl World {
    pub(super) fn open(settings: Settings) -> Result<Self, Error> {
        let (journal, memory) = Journal::open(settings.file.as_deref())?;
        let used = memory.hosts.keys().chain(memory.commands.keys());
        let used = used.filter_map(|id| u64::from_str_radix(id.split_once('-')?.1, 16).ok());
        let used = used.chain(memory.messages.keys().copied()).max().unwrap_or(0);
        let tokens = memory.hosts.values().map(|host| (host.token.clone(), host.id.clone()));
        let tokens = tokens.filter(|(token, _)| !token.is_empty()).collect();
        let messages = memory.messages.into_iter();
        let spot = CATALOGUE.iter().flat_map(|entry| {
            let name = || entry.name.to_owned();
            ZONES.iter().map(move |zone| ((name(), (*zone).to_owned()), entry.market_price))
        });
        Ok(Self {
            faults: settings.faults,
            commands: memory.commands,
            messages: messages.map(|(id, body)| (id, Message { body, hidden: 0 })).collect(),
            spot_prices: spot.collect(),
            list_prices: CATALOGUE
                .iter()
                .map(|entry| (entry.name.to_owned(), entry.list_price))
                .collect(),
            parts: BTreeMap::new(),
            tokens,
            journal,
            // Unique over restarts, whatever was remembered.
            numbers: used.max(now() << 8),
            calls: (0, 0),
            hosts: memory.hosts,
        })
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Whether this call is one too many.
    pub(super) fn throttles(&mut self) -> bool {
        if self.faults.throttle_next > 0 {
            self.faults.throttle_next -= 1;
            return true;
        }
        let second = now() / 1000;
        if self.calls.0 != second {
            self.calls = (second, 0);
        }
        self.calls.1 += 1;
        let most = self.faults.calls_per_second;
        most > 0 && self.calls.1 > most
    }

    /// One instance a token, for ever.
    pub(super) fn launch(&mut self, launch: Launch) -> Result<Host, Refused> {
        if let Some(known) = self.tokens.get(&launch.token).and_then(|id| self.hosts.get(id)) {
            if known.parameters != launch.parameters {
                let text = "the token was used with other parameters".to_owned();
                return Err(("IdempotentParameterMismatch", text));
            }
            return Ok(known.clone());
        }
        let now = now();
        let live: Vec<_> = self.hosts.values().filter(|host| host.is_live(now)).collect();
        if self.faults.limit.is_some_and(|limit| live.len() >= limit) {
            return Err(("InstanceLimitExceeded", "no more instances for this account".to_owned()));
        }
        let place = format!("{}/{}", launch.instance_type, launch.zone);
        let there = |host: &&&Host| format!("{}/{}", host.instance_type, host.zone) == place;
        let held = live.iter().filter(there).count();
        if self.faults.stock.get(&place).is_some_and(|stock| held >= *stock) {
            return Err(("InsufficientInstanceCapacity", format!("no {place} at present")));
        }
        let host = Host {
            id: format!("i-{:017x}", self.number()),
            instance_type: launch.instance_type,
            zone: launch.zone,
            spot: launch.spot,
            token: launch.token,
            parameters: launch.parameters,
            tags: launch.tags,
            launched: now,
            visible: now + self.faults.visible_after_ms,
            running: now + self.faults.running_after_ms,
            stopped: false,
            ends: None,
            end_visible: 0,
            terminated_after: 0,
            reason: String::new(),
            joined: None,
            reboots: 0,
        };
        if !host.token.is_empty() {
            self.tokens.insert(host.token.clone(), host.id.clone());
        }
        self.keep(host.clone());
        Ok(host)
    }

    /// A visible one.
    pub(super) fn visible(&self, id: &str) -> Result<&Host, Refused> {
        let host = self.hosts.get(id).filter(|host| now() >= host.visible);
        host.ok_or_else(|| {
            ("InvalidInstanceID.NotFound", format!("the instance ID {id:?} does not exist"))
        })
    }

    /// Ends it, now or later.
    pub(super) fn end(&mut self, id: &str, at: u64, reason: &str) {
        let lag = self.faults.visible_after_ms;
        let terminated_after = self.faults.terminated_after_ms;
        self.change(id, |host| {
            if host.ends.is_none_or(|ends| at < ends) {
                host.ends = Some(at);
                host.end_visible = at + lag;
                host.terminated_after = terminated_after;
                reason.clone_into(&mut host.reason);
            }
        });
    }

    /// Changes a host, and remembers it.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut Host)) {
        if let Some(mut host) = self.hosts.get(id).cloned() {
            change(&mut host);
            self.keep(host);
        }
    }

    fn keep(&mut self, host: Host) {
        self.journal.write(&Line::Host(Box::new(host.clone())));
        self.hosts.insert(host.id.clone(), host);
    }

    pub(super) fn keep_command(&mut self, command: Command) {
        self.journal.write(&Line::Command(command.clone()));
        self.commands.insert(command.id.clone(), command);
    }

    /// Puts an event into the queue.
    pub(super) fn tell(&mut self, body: String) {
        let number = self.number();
        self.journal.write(&Line::Message(number, body.clone()));
        self.messages.insert(number, Message { body, hidden: 0 });
    }

    /// Takes one out.
    pub(super) fn taken(&mut self, number: u64) {
        if self.messages.remove(&number).is_some() {
            self.journal.write(&Line::Taken(number));
        }
    }

    /// Slots that hold more than one live instance.
    pub(super) fn crowded(&self) -> BTreeSet<String> {
        let now = now();
        let (mut seen, mut crowded) = (BTreeSet::new(), BTreeSet::new());
        for host in self.hosts.values().filter(|host| host.is_live(now)) {
            let slot = host.tags.get(MACHINE_ID).cloned().unwrap_or_default();
            if !seen.insert(slot.clone()) {
                crowded.insert(slot);
            }
        }
        crowded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(token: &str) -> Launch {
        Launch {
            token: token.into(),
            instance_type: "m6i.large".into(),
            zone: ZONES[0].into(),
            spot: false,
            tags: BTreeMap::new(),
            parameters: "p".into(),
        }
    }

    #[test]
    fn a_token_brings_one_instance_over_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let file = Some(directory.path().join("standin"));
        let open = || World::open(Settings { file: file.clone(), ..Settings::default() }).unwrap();
        let first = open().launch(launch("op-1")).unwrap();
        let mut world = open();
        assert_eq!(world.launch(launch("op-1")).unwrap().id, first.id);
        assert_ne!(world.launch(launch("op-2")).unwrap().id, first.id);
        let other = Launch { parameters: "q".into(), ..launch("op-1") };
        assert_eq!(world.launch(other).unwrap_err().0, "IdempotentParameterMismatch");
        assert_eq!(world.hosts.len(), 2);
    }

    #[test]
    fn a_torn_line_is_cut_off_and_junk_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("standin");
        let open = || World::open(Settings { file: Some(file.clone()), ..Settings::default() });
        open().unwrap().launch(launch("op-1")).unwrap();
        let whole = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{whole}{{\"host\":{{\"id\"")).unwrap();
        assert_eq!(open().unwrap().hosts.len(), 1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
        std::fs::write(&file, format!("junk\n{whole}")).unwrap();
        assert!(open().unwrap_err().to_string().contains("line 1"));
    }

    #[test]
    fn stock_and_limit() {
        let mut world = World::open(Settings::default()).unwrap();
        world.faults.stock.insert(format!("m6i.large/{}", ZONES[0]), 1);
        let first = world.launch(launch("op-1")).unwrap();
        assert_eq!(world.launch(launch("op-2")).unwrap_err().0, "InsufficientInstanceCapacity");
        world.end(&first.id, now(), "");
        world.launch(launch("op-3")).unwrap();
        world.faults.limit = Some(1);
        assert_eq!(world.launch(launch("op-4")).unwrap_err().0, "InstanceLimitExceeded");
    }
}
