//! A shard that does what it is told.
//!
//! The gate is the real one: under mTLS a session is taken only from the cluster
//! that it names. It takes every frame down, acks Hellos and roll-ups as told, and
//! sends what a test sends through it; it can stop reading, so that the operator
//! feels its own queues fill.

mod frames;
mod heard;
mod service;

use std::{fmt::Debug, time::Duration};

use bigfleet_net::{
    grpc::{ConnectionLimits, GrpcServer},
    message_limits,
    readiness::Readiness,
    tls::Security,
};
use bigfleet_wire::v1alpha1::{
    ShardMessage, operator_message::Payload as Up, shard_message::Payload as Down,
    shard_server::ShardServer,
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    time::timeout,
};
use tonic::Status;

pub use self::heard::{Acks, Heard};
use self::service::Service;
use crate::{Error, served::Served};

/// A scripted shard. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Shard {
    heard: watch::Sender<Heard>,
    served: Served,
}

impl Shard {
    /// Serves on a free port of this machine.
    pub async fn start(security: &Security) -> Result<Self, Error> {
        let heard = watch::Sender::new(Heard::default());
        let served = Served::start(server(&heard, security)).await?;
        Ok(Self { heard, served })
    }

    /// Serves on this listener: a shard that comes back where it was.
    pub fn start_on(listener: TcpListener, security: &Security) -> Result<Self, Error> {
        let heard = watch::Sender::new(Heard::default());
        let served = Served::start_on(listener, server(&heard, security))?;
        Ok(Self { heard, served })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> &str {
        self.served.addr()
    }

    /// How roll-ups are acked from now on.
    pub fn set_acks(&self, acks: Acks) {
        self.heard.send_modify(|heard| heard.acks = acks);
    }

    /// Reads on, or no longer: frames then wait in the transport until it is full.
    pub fn set_reading(&self, reading: bool) {
        self.heard.send_modify(|heard| heard.deaf = !reading);
    }

    /// Takes no more frames down; for loads whose frames would fill the memory.
    pub fn forget(&self) {
        self.heard.send_modify(|heard| heard.forgetful = true);
    }

    /// What was heard so far. Let go of it before the next `await`.
    #[must_use]
    pub fn heard(&self) -> watch::Ref<'_, Heard> {
        self.heard.borrow()
    }

    /// Sends on the newest session; waits while its stream takes nothing.
    pub async fn send(&self, payload: Down) -> Result<(), Error> {
        let outbox = self.outbox()?;
        outbox.send(Ok(down(payload))).await.map_err(|_| Error::NoSession)
    }

    /// Sends a frame whose payload only a newer operator would know.
    pub async fn send_empty(&self) -> Result<(), Error> {
        let outbox = self.outbox()?;
        outbox.send(Ok(ShardMessage { payload: None })).await.map_err(|_| Error::NoSession)
    }

    /// Whether the newest session's stream takes one more frame now.
    pub fn try_send(&self, payload: Down) -> Result<bool, Error> {
        Ok(self.outbox()?.try_send(Ok(down(payload))).is_ok())
    }

    /// Ends the newest session with this status.
    pub async fn end_with(&self, status: Status) -> Result<(), Error> {
        let mut newest = None;
        self.heard.send_modify(|heard| newest = heard.outboxes.pop_last());
        let (_, outbox) = newest.ok_or(Error::NoSession)?;
        outbox.send(Err(status)).await.map_err(|_| Error::NoSession)
    }

    fn outbox(&self) -> Result<Outbox, Error> {
        self.heard.borrow().outboxes.values().next_back().cloned().ok_or(Error::NoSession)
    }

    /// Waits until what was heard satisfies the condition; `wanted` says what for,
    /// should it not come.
    pub async fn wait_for(
        &self,
        wanted: &'static str,
        condition: impl FnMut(&Heard) -> bool,
        within: Duration,
    ) -> Result<(), Error> {
        let mut heard = self.heard.subscribe();
        if timeout(within, heard.wait_for(condition)).await.is_ok() {
            return Ok(());
        }
        let seen = format!("{:?}", self.heard.borrow());
        Err(Error::Late { waited: within, wanted, seen })
    }

    /// Waits for the first frame that the look finds something in.
    pub async fn find<T>(
        &self,
        wanted: &'static str,
        look: impl Fn(&Up) -> Option<T>,
        within: Duration,
    ) -> Result<T, Error> {
        let found = |heard: &Heard| heard.frames.iter().find_map(|(_, frame)| look(frame));
        self.wait_for(wanted, |heard| found(heard).is_some(), within).await?;
        let late = || Error::Late { waited: within, wanted, seen: "forgotten".to_owned() };
        found(&self.heard.borrow()).ok_or_else(late)
    }
}

fn server(heard: &watch::Sender<Heard>, security: &Security) -> GrpcServer {
    let service = ShardServer::new(Service::new(heard.clone()));
    let limits = ConnectionLimits { drain: Duration::ZERO, ..ConnectionLimits::default() };
    GrpcServer::new(security.clone(), Readiness::new("a script"))
        .add_service(message_limits!(service))
        .limits(limits)
}

type Outbox = mpsc::Sender<Result<ShardMessage, Status>>;

fn down(payload: Down) -> ShardMessage {
    ShardMessage { payload: Some(payload) }
}
