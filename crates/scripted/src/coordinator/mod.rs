//! A coordinator that answers as it is told.
//!
//! The gates are the real ones: under mTLS a report is taken only from the shard
//! that it names. What it answers is a script: to reports the next answers in a
//! queue, then a standing one; to every other call the reply of that type, if one was
//! told. A standing refusal is for all calls.

mod answer;
mod replies;
mod service;

use std::{any::Any, time::Duration};

use bigfleet_net::{
    grpc::{ConnectionLimits, GrpcServer},
    message_limits,
    readiness::Readiness,
    tls::Security,
};
use bigfleet_wire::v1alpha1::{
    Assignment, CoordinatorInstruction, ShardReport, coordinator_server::CoordinatorServer,
};
use tokio::{net::TcpListener, sync::watch, time::timeout};
use tonic::Code;

pub use self::answer::Answer;
use self::service::{Script, Service};
use crate::{Error, served::Served};

/// Calls that a script never answers must not hold up its end.
const DRAIN: Duration = Duration::from_millis(200);

/// A scripted coordinator. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Coordinator {
    script: watch::Sender<Script>,
    served: Served,
}

impl Coordinator {
    /// Serves on a free port of this machine.
    pub async fn start(security: &Security) -> Result<Self, Error> {
        let script = watch::Sender::new(Script::default());
        let served = Served::start(server(&script, security)).await?;
        Ok(Self { script, served })
    }

    /// Serves on this listener: a coordinator that comes back where it was.
    pub fn start_on(listener: TcpListener, security: &Security) -> Result<Self, Error> {
        let script = watch::Sender::new(Script::default());
        let served = Served::start_on(listener, server(&script, security))?;
        Ok(Self { script, served })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> &str {
        self.served.addr()
    }

    /// The answer to the next report that has none yet. Each call adds one; when
    /// they are used up, the standing answer holds again.
    pub fn next(&self, answer: Answer) {
        self.script.send_modify(|script| script.next.push_back(answer));
    }

    /// The standing answer; at first it is [`Answer::Report`].
    pub fn always(&self, answer: Answer) {
        self.script.send_modify(|script| script.standing = answer);
    }

    /// The term of [`Answer::Report`] from now on.
    pub fn set_term(&self, term: i64) {
        self.script.send_modify(|script| script.term = term);
    }

    /// The fleet of [`Answer::Report`] from now on.
    pub fn set_fleet(&self, fleet_id: &str) {
        self.script.send_modify(|script| fleet_id.clone_into(&mut script.fleet_id));
    }

    /// Sends this with every [`Answer::Report`] until a report acks it otherwise
    /// than with FAILED, as a coordinator redelivers.
    pub fn instruct(&self, instruction: CoordinatorInstruction) {
        self.script.send_modify(|script| script.pending.push(instruction));
    }

    /// What the shard has from now on: sent with [`Answer::Report`] to every report of
    /// another version or digest.
    pub fn assign(&self, assignment: Assignment) {
        self.script.send_modify(|script| script.assignment = Some(assignment));
    }

    /// Whether every [`Answer::Report`] asks for what the shard holds.
    pub fn want_holdings(&self, wants: bool) {
        self.script.send_modify(|script| script.wants_holdings = wants);
    }

    /// Instructions that no report has acked yet.
    #[must_use]
    pub fn pending(&self) -> Vec<CoordinatorInstruction> {
        self.script.borrow().pending.clone()
    }

    /// From now on the reply to every call that returns this type; that of
    /// `SnapshotSave` is a `Vec<SnapshotSaveChunk>`.
    pub fn reply<R: Any + Send + Sync>(&self, reply: R) {
        self.script.send_modify(|script| script.replies.tell(Ok(reply)));
    }

    /// The reply to the next call that returns this type and has none yet; when they
    /// are used up, the standing one holds again.
    pub fn reply_once<R: Any + Send + Sync>(&self, reply: R) {
        self.script.send_modify(|script| script.replies.tell_once(reply));
    }

    /// From now on the refusal of every call that would return this type.
    pub fn refuse<R: Any + Send + Sync>(&self, code: Code, text: &str) {
        let refusal = Err::<R, _>((code, text.to_owned()));
        self.script.send_modify(|script| script.replies.tell(refusal));
    }

    /// The clock that its answers show, as an HTTP date.
    pub fn set_date(&self, date: &str) {
        self.script.send_modify(|script| script.date = Some(date.to_owned()));
    }

    /// Every call but reports that passed the gate so far, as text, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.script.borrow().replies.asked.clone()
    }

    /// Every report so far, in order, those answered with an error too.
    #[must_use]
    pub fn reports(&self) -> Vec<ShardReport> {
        self.script.borrow().reports.clone()
    }

    /// Waits until the reports so far satisfy the condition; `wanted` says what
    /// for, should it not come.
    pub async fn wait_for(
        &self,
        wanted: &'static str,
        mut condition: impl FnMut(&[ShardReport]) -> bool,
        within: Duration,
    ) -> Result<(), Error> {
        let mut changes = self.script.subscribe();
        let search = changes.wait_for(|script| condition(&script.reports));
        let in_time = timeout(within, search).await.is_ok();
        if in_time {
            return Ok(());
        }
        let reports = &self.script.borrow().reports;
        let seen = format!("{} reports, the last: {:?}", reports.len(), reports.last());
        Err(Error::Late { waited: within, wanted, seen })
    }

    /// Waits for the next report after now.
    pub async fn next_report(&self, within: Duration) -> Result<ShardReport, Error> {
        let known = self.script.borrow().reports.len();
        self.wait_for("one more report", |reports| reports.len() > known, within).await?;
        let next = self.script.borrow().reports.get(known).cloned();
        Ok(next.unwrap_or_default())
    }

    /// Stops serving and returns when all connections are closed.
    pub async fn stop(self) -> Result<(), Error> {
        self.served.stop().await
    }
}

fn server(script: &watch::Sender<Script>, security: &Security) -> GrpcServer {
    let readiness = Readiness::new("starting");
    readiness.set_ready();
    let service = CoordinatorServer::new(Service::new(script.clone()));
    let limits = ConnectionLimits { drain: DRAIN, ..ConnectionLimits::default() };
    GrpcServer::new(security.clone(), readiness)
        .add_service(message_limits!(service))
        .limits(limits)
}
