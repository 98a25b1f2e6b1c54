//! Whom to ask, in which order.

use std::{collections::VecDeque, fmt, net::SocketAddr, time::Duration};

/// Of two followers that name each other no third is expected to know better.
const HINTS: usize = 3;

/// One replica to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// `host:port`, whose host the certificate must carry.
    pub(super) name: String,
    /// Which of the addresses behind the name.
    pub(super) at: Option<SocketAddr>,
}

impl Target {
    fn is_called(&self, addr: &str) -> bool {
        self.name == addr || self.at.is_some_and(|at| at.to_string() == addr)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.map(|at| at.to_string()) {
            Some(at) if at != self.name => write!(f, "{} ({at})", self.name),
            _ => f.write_str(&self.name),
        }
    }
}

/// Replicas that have not been asked yet.
#[derive(Debug)]
pub(super) struct Queue {
    /// Whom to ask, and whether it is believed to lead.
    waiting: VecDeque<(Target, bool)>,
    asked: Vec<Target>,
    hints: usize,
}

impl Queue {
    /// The last known leader first, then everybody else.
    pub(super) fn new(leader: Option<Target>, everybody: impl Iterator<Item = Target>) -> Self {
        let others = everybody.filter(|target| leader.as_ref() != Some(target));
        let others = others.map(|target| (target, false)).collect::<Vec<_>>();
        let waiting = leader.map(|leader| (leader, true)).into_iter().chain(others).collect();
        Self { waiting, asked: Vec::new(), hints: 0 }
    }

    pub(super) fn next(&mut self) -> Option<(Target, bool)> {
        self.waiting.pop_front()
    }

    pub(super) fn asked(&mut self, target: Target) {
        self.asked.push(target);
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The time for one attempt: a silent replica leaves some for the others. One
    /// that is believed to lead gets more, for it may have to commit.
    pub(super) fn share(&self, left: Duration, believed: bool) -> Duration {
        let others = self.waiting.len().min(if believed { 1 } else { usize::MAX });
        left / u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// A follower names the leader: it is asked next, unless it was already.
    pub(super) fn hinted(&mut self, addr: &str) {
        if addr.is_empty()
            || self.hints == HINTS
            || self.asked.iter().any(|asked| asked.is_called(addr))
        {
            return;
        }
        self.hints += 1;
        let known = self.waiting.iter().position(|(target, _)| target.is_called(addr));
        let known = known.and_then(|at| self.waiting.remove(at)).map(|(target, _)| target);
        let named = known.unwrap_or_else(|| Target { name: addr.to_owned(), at: None });
        self.waiting.push_front((named, true));
    }
}
