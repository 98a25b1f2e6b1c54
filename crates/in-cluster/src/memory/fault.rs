use std::time::Duration;

use super::{answer::Answer, route::Route};

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// A page of a collection.
    List,
    /// Changes of a collection.
    Watch,
    /// A new object, or an eviction.
    Create,
    /// A whole object.
    Update,
    /// Part of an object.
    Patch,
    /// One object.
    Delete,
    /// Several objects.
    DeleteCollection,
}

/// A trouble of the server: which calls it befalls, how often, and what happens to them.
///
/// ```
/// use bigfleet_in_cluster::memory::{Fault, Verb};
/// use std::time::Duration;
///
/// let busy = Fault::answer(429).retry_after(2).on(Verb::Patch, "capacityrequests").times(3);
/// let slow = Fault::latency(Duration::from_millis(200));
/// ```
#[derive(Debug, Clone)]
pub struct Fault {
    effect: Effect,
    verb: Option<Verb>,
    plural: Option<String>,
    subresource: Option<String>,
    name: Option<String>,
    skip: u32,
    left: Option<u32>,
}

#[derive(Debug, Clone)]
enum Effect {
    Latency(Duration),
    Answer { code: u16, message: String, retry_after: Option<u32> },
    Unreachable,
}

/// What befalls one call.
#[derive(Debug, Default)]
pub(super) struct Fate {
    pub(super) latency: Duration,
    /// None: as usual. An error: no answer at all.
    pub(super) answer: Option<Result<Answer, Unreachable>>,
}

/// The server was not reached.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("connection refused: the server is away")]
pub struct Unreachable;

impl Fault {
    fn new(effect: Effect) -> Self {
        Self {
            effect,
            verb: None,
            plural: None,
            subresource: None,
            name: None,
            skip: 0,
            left: None,
        }
    }

    /// The call takes longer.
    #[must_use]
    pub fn latency(duration: Duration) -> Self {
        Self::new(Effect::Latency(duration))
    }

    /// The call is refused with a status code.
    #[must_use]
    pub fn answer(code: u16) -> Self {
        let message = "a fault of the test".to_owned();
        Self::new(Effect::Answer { code, message, retry_after: None })
    }

    /// A refusal says this.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        if let Effect::Answer { message, .. } = &mut self.effect {
            text.clone_into(message);
        }
        self
    }

    /// The call gets no answer: the connection breaks.
    #[must_use]
    pub fn unreachable() -> Self {
        Self::new(Effect::Unreachable)
    }

    /// A refusal names the seconds to stay away.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Effect::Answer { retry_after, .. } = &mut self.effect {
            *retry_after = Some(seconds);
        }
        self
    }

    /// Only such calls.
    #[must_use]
    pub fn on(mut self, verb: Verb, plural: &str) -> Self {
        self.verb = Some(verb);
        self.plural = Some(plural.to_owned());
        self
    }

    /// Only calls to this subresource.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only calls to objects of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only that many calls; the next ones are as usual.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.left = Some(times);
        self
    }

    /// Not the first calls that would be befallen.
    #[must_use]
    pub fn after(mut self, calls: u32) -> Self {
        self.skip = calls;
        self
    }

    fn befalls(&mut self, verb: Verb, route: &Route) -> bool {
        let other = |wanted: &Option<String>, got: Option<&str>| {
            wanted.as_deref().is_some_and(|wanted| Some(wanted) != got)
        };
        if self.left == Some(0)
            || self.verb.is_some_and(|wanted| wanted != verb)
            || other(&self.plural, Some(&route.plural))
            || other(&self.subresource, route.subresource.as_deref())
            || other(&self.name, route.name.as_deref())
        {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        true
    }
}

/// What befalls a call by all faults that stand; an answer comes from the first that gives one.
pub(super) fn fate(faults: &mut Vec<Fault>, verb: Verb, route: &Route) -> Fate {
    let mut fate = Fate::default();
    for fault in faults.iter_mut() {
        if fate.answer.is_some() && !matches!(fault.effect, Effect::Latency(_)) {
            continue;
        }
        if !fault.befalls(verb, route) {
            continue;
        }
        match &fault.effect {
            Effect::Latency(duration) => fate.latency += *duration,
            Effect::Answer { code, message, retry_after } => {
                let answer = Answer::refusal(*code, "Injected", message);
                fate.answer = Some(Ok(answer.retry_after(*retry_after)));
            }
            Effect::Unreachable => fate.answer = Some(Err(Unreachable)),
        }
    }
    faults.retain(|fault| fault.left != Some(0));
    fate
}
