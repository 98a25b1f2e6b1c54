//! The six calls of a fake, with what tests want of them: a log, delays, lost
//! replies.

use std::time::Duration;

use bigfleet_model::{Machine, MachineId};
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::{Fake, world::Mutation};
use crate::{
    error::Error,
    mutant::{Mutant, active},
    protocol::{BadArgument, Kind, Refused, Token},
    provider::{Ack, Attempt, Configure, FencedProvider, ListFilter, MachineList},
};

/// One of the six calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// A mutation.
    Mutate(Kind),
    /// Get.
    Get,
    /// List.
    List,
}

/// A call as it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCall {
    /// Which call.
    pub method: Method,
    /// Of which machine; empty for List.
    pub machine: String,
    /// Reads have none.
    pub token: Option<Token>,
    /// When it was decided, by the fake's clock.
    pub at: Duration,
    /// [`Code::Ok`], or why not. A lost reply shows what it would have said.
    pub outcome: Code,
}

/// What happens to the next call of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Which method.
    pub method: Method,
    /// Only for this machine.
    pub machine: Option<MachineId>,
    /// It arrives so much later.
    pub delay: Duration,
    /// Its reply takes so much longer.
    pub reply_delay: Duration,
    /// Its reply is lost: decided, and the caller hears UNAVAILABLE.
    pub drop_ack: bool,
}

impl Script {
    /// Nothing special happens to the next call of this method.
    pub const fn next(method: Method) -> Self {
        let (delay, reply_delay) = (Duration::ZERO, Duration::ZERO);
        Self { method, machine: None, delay, reply_delay, drop_ack: false }
    }
}

struct Asked<'a> {
    method: Method,
    machine: &'a str,
    token: Option<&'a Token>,
}

impl Fake {
    /// Decides a call at once, or as its script says.
    async fn answer<T>(
        &self,
        asked: Asked<'_>,
        decide: impl FnOnce(&mut super::world::World) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let Asked { method, machine, token } = asked;
        let script = self.take_script(method, machine).unwrap_or_else(|| Script::next(method));
        pause(script.delay).await;
        let answer = {
            let mut world = self.world();
            let answer = decide(&mut world);
            let outcome = answer.as_ref().err().map_or(Code::Ok, Error::code);
            let (machine, at) = (machine.to_owned(), world.now);
            let call = LoggedCall { method, machine, token: token.cloned(), at, outcome };
            if world.log.len() >= world.options.call_log {
                world.log.pop_front();
            }
            if world.options.call_log > 0 {
                world.log.push_back(call);
            }
            answer
        };
        pause(script.reply_delay).await;
        if script.drop_ack {
            return Err(Error::Unavailable("the reply was lost".to_owned()));
        }
        answer
    }

    fn take_script(&self, method: Method, machine: &str) -> Option<Script> {
        let meant = |script: &Script| {
            script.method == method && script.machine.as_deref().is_none_or(|id| id == machine)
        };
        let mut world = self.world();
        let found = world.scripts.iter().position(meant)?;
        Some(world.scripts.remove(found))
    }

    async fn mutate(&self, attempt: &Attempt, call: Mutation<'_>) -> Result<Ack, Error> {
        let method = Method::Mutate(call.kind);
        let asked = Asked { method, machine: call.machine, token: Some(&attempt.token) };
        self.answer(asked, |world| {
            BadArgument::check_id("machine_id", call.machine)?;
            BadArgument::check_token(&attempt.token)?;
            if call.kind == Kind::Delete && !world.options.support_delete {
                let text = "this provider's capacity is fixed: it never deletes a machine";
                return Err(Error::NotSupported(text.to_owned()));
            }
            attempt.check_deadline()?;
            world.mutate(attempt, call)
        })
        .await
    }
}

async fn pause(delay: Duration) {
    if !delay.is_zero() {
        sleep(delay).await;
    }
}

fn plain(kind: Kind, machine: &MachineId) -> Mutation<'_> {
    Mutation { kind, machine, binding: None, grace: Duration::ZERO }
}

impl FencedProvider for Fake {
    async fn create(&self, attempt: &Attempt, machine: &MachineId) -> Result<Ack, Error> {
        self.mutate(attempt, plain(Kind::Create, machine)).await
    }

    async fn configure(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
        request: Configure,
    ) -> Result<Ack, Error> {
        let caps = self.world().options.caps;
        let (cluster, blob) = (&request.cluster, request.blob.expose());
        BadArgument::check_configure(caps, cluster, blob, &request.metadata)?;
        let binding = Some(request.binding());
        let call = Mutation { binding, ..plain(Kind::Configure, machine) };
        self.mutate(attempt, call).await
    }

    async fn drain(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
        grace: Duration,
    ) -> Result<Ack, Error> {
        self.mutate(attempt, Mutation { grace, ..plain(Kind::Drain, machine) }).await
    }

    async fn delete(&self, attempt: &Attempt, machine: &MachineId) -> Result<Ack, Error> {
        self.mutate(attempt, plain(Kind::Delete, machine)).await
    }

    async fn get(&self, machine: &MachineId, _: Option<Instant>) -> Result<Machine, Error> {
        let asked = Asked { method: Method::Get, machine, token: None };
        self.answer(asked, |world| {
            BadArgument::check_id("id", machine)?;
            if active(Mutant::RevisionOnRead) {
                world.revisions.bump(machine);
            }
            let known = world.machines.get(machine).cloned();
            Ok(known.ok_or_else(|| Refused::NotFound(machine.to_string()))?)
        })
        .await
    }

    async fn list(&self, filter: &ListFilter, _: Option<Instant>) -> Result<MachineList, Error> {
        let asked = Asked { method: Method::List, machine: "", token: None };
        self.answer(asked, |world| {
            let machines = &world.machines;
            let wanted = |id: &MachineId| {
                let state = machines.get(id).map(|machine| machine.state);
                state.is_some_and(|state| filter.states.is_none_or(|set| set.contains(state)))
            };
            let max = filter.max_results as usize;
            let page = world.revisions.page(&filter.since_revision, max, wanted);
            let machines = page.machines.iter().filter_map(|id| machines.get(id).cloned());
            Ok(MachineList {
                machines: machines.collect(),
                refused: Vec::new(),
                revision: page.cursor.to_string().into_bytes(),
            })
        })
        .await
    }
}
