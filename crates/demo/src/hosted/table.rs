//! Who may have a fleet, and for how long. Pure.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    time::Duration,
};

use tokio::time::Instant;

/// Longest session.
const HARD: Duration = Duration::from_secs(60 * 60);
/// Longest silence.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// Bytes that one fleet may need.
pub(super) const EACH: u64 = 300 * 1024 * 1024;
/// Percent of the memory above which nobody is let in.
const FULL: u64 = 80;
/// Sessions of one client at once: a few people behind one address have a fleet each, and nobody
/// has them all.
pub(super) const PER_CLIENT: usize = 3;
/// Sessions whose end is remembered.
const REMEMBERED: usize = 10_000;

/// What a page shows to be somebody.
pub(super) type Secret = String;

/// Memory of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) total: u64,
    pub(super) used: u64,
}

impl Memory {
    /// Whether one more fleet fits beside so many.
    pub(super) fn fits(self, fleets: usize) -> bool {
        let wanted = EACH.saturating_mul(fleets as u64 + 1);
        wanted <= self.total && self.used.saturating_mul(100) < self.total.saturating_mul(FULL)
    }
}

/// A session.
#[derive(Clone, Copy, Debug)]
struct Session {
    began: Instant,
    beat: Instant,
    client: IpAddr,
}

impl Session {
    fn ends(self) -> Instant {
        (self.began + HARD).min(self.beat + IDLE)
    }
}

/// Why somebody has no fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No such session.
    Unknown,
    /// It is over.
    Over,
}

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Table {
    sessions: HashMap<Secret, Session>,
    /// Oldest first.
    over: VecDeque<Secret>,
}

impl Table {
    /// Sessions that run.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// The clock of a session starts. Says when it ends in any case.
    pub(super) fn begin(&mut self, secret: Secret, client: IpAddr, now: Instant) -> Instant {
        self.sessions.insert(secret, Session { began: now, beat: now, client });
        now + HARD
    }

    /// When it is worth to try again for a client that has as many sessions as it may; none where
    /// it may have one more.
    pub(super) fn may_not_begin(&self, client: IpAddr, now: Instant) -> Option<Duration> {
        let own = || self.sessions.values().filter(|session| session.client == client);
        let next = own().map(|session| session.ends()).min()?;
        (own().count() >= PER_CLIENT).then(|| wait(next, now))
    }

    /// Somebody is there. Says when the session ends in any case, and when if nobody stirs.
    pub(super) fn touch(
        &mut self,
        secret: &str,
        now: Instant,
    ) -> Result<(Instant, Instant), Refusal> {
        let Some(session) = self.sessions.get_mut(secret) else {
            let over = self.over.iter().any(|over| over == secret);
            return Err(if over { Refusal::Over } else { Refusal::Unknown });
        };
        if session.ends() <= now {
            return Err(Refusal::Over);
        }
        session.beat = now;
        Ok((session.began + HARD, session.ends()))
    }

    /// Ends those whose time is over.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Secret> {
        let due = self.sessions.iter().filter(|(_, session)| session.ends() <= now);
        let due: Vec<Secret> = due.map(|(secret, _)| secret.clone()).collect();
        for secret in &due {
            self.sessions.remove(secret);
            if self.over.len() >= REMEMBERED {
                self.over.pop_front();
            }
            self.over.push_back(secret.clone());
        }
        due
    }

    /// When it is worth to try again.
    pub(super) fn next_end(&self, now: Instant) -> Duration {
        let ends = self.sessions.values().map(|session| session.ends());
        wait(ends.min().unwrap_or(now), now)
    }
}

fn wait(until: Instant, now: Instant) -> Duration {
    until.saturating_duration_since(now).max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * 1024 * 1024;
    const MINUTE: Duration = Duration::from_secs(60);
    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn a_fleet_is_given_only_where_all_of_them_fit() {
        let memory = |used| Memory { total: GIB, used };
        assert!(memory(0).fits(0) && memory(0).fits(2));
        assert!(!memory(0).fits(3), "four need 1200 MiB");
        assert!(!memory(GIB * 4 / 5 + 1).fits(0), "four fifths are used");
        assert!(memory(GIB * 4 / 5 - 10).fits(0));
    }

    #[test]
    fn a_session_ends_by_silence_or_by_the_hour() {
        let mut table = Table::default();
        let begun = Instant::now();
        table.begin("a".to_owned(), ONE, begun);
        assert_eq!(table.touch("b", begun), Err(Refusal::Unknown));
        for minute in 1..60 {
            let now = begun + MINUTE * minute;
            assert_eq!(table.touch("a", now).unwrap().0, begun + HARD, "{minute}");
            assert!(table.expire(now).is_empty());
        }
        assert_eq!(table.touch("a", begun + HARD), Err(Refusal::Over));
        assert_eq!(table.expire(begun + HARD), ["a"]);
        assert_eq!(table.touch("a", begun + HARD), Err(Refusal::Over), "remembered");
        table.begin("c".to_owned(), ONE, begun);
        assert_eq!(table.next_end(begun + MINUTE), MINUTE * 4);
        assert_eq!(table.expire(begun + MINUTE * 5), ["c"], "nobody stirred");
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn nobody_has_all_fleets() {
        let mut table = Table::default();
        let begun = Instant::now();
        for number in 0..PER_CLIENT as u32 {
            let now = begun + MINUTE * number;
            assert_eq!(table.may_not_begin(ONE, now), None, "{number}");
            table.begin(number.to_string(), ONE, now);
        }
        let now = begun + MINUTE * 3;
        assert_eq!(table.may_not_begin(ONE, now), Some(MINUTE * 2), "when the first one ends");
        assert_eq!(table.may_not_begin(OTHER, now), None);
        assert_eq!(table.expire(begun + MINUTE * 5), ["0"]);
        assert_eq!(table.may_not_begin(ONE, begun + MINUTE * 5), None);
    }

    #[test]
    fn the_oldest_end_is_forgotten_first() {
        let mut table = Table::default();
        let begun = Instant::now();
        for hour in 0..=REMEMBERED as u32 {
            table.begin(hour.to_string(), ONE, begun + MINUTE * hour);
            assert_eq!(table.expire(begun + MINUTE * (hour + 60)).len(), 1);
        }
        let now = begun + MINUTE * 2 * REMEMBERED as u32;
        assert_eq!(table.touch("0", now), Err(Refusal::Unknown));
        for kept in [1, REMEMBERED] {
            assert_eq!(table.touch(&kept.to_string(), now), Err(Refusal::Over));
        }
    }
}
