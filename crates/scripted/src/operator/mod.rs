//! One operator on a real session.
//!
//! It does what an operator must (answers bootstrap requests, cordons, drains,
//! acks), unless its script says otherwise, and keeps what it was told. Tests
//! wait on that with a condition; nothing here polls.

mod connection;
mod options;
mod picture;
mod policy;
mod session;
mod shared;
mod state;

use std::{sync::Arc, time::Duration};

use bigfleet_net::tls::Security;
use bigfleet_wire::v1alpha1::{
    BootstrapRequest, CapacityNeed, ClusterCapacityNeeds, Hello, OperatorMessage,
    ReclaimInstruction, ShardMessage, operator_message::Payload,
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tonic::Status;

use self::{connection::Connection, session::Session, shared::Shared};
pub use self::{
    options::{FINAL_RECLAIM_ACK, NEED_STATUS, OperatorOptions},
    picture::{Cordon, Machine, Picture},
    policy::{Bootstrap, Reclaim},
    state::{Answer, Drain, Received, State},
};
pub(crate) use self::{session::message, shared::unix_nanos};
use crate::Error;

/// A scripted operator. Dropping it drops its connection.
#[derive(Debug)]
pub struct Operator {
    addr: String,
    security: Security,
    shared: Arc<Shared>,
    stream: Option<(Connection, JoinHandle<()>)>,
}

impl Operator {
    /// Dials, says Hello and returns when it is acked; else how the shard ended
    /// the session.
    pub async fn connect(
        addr: &str,
        security: &Security,
        options: OperatorOptions,
    ) -> Result<Self, Status> {
        let mut operator = Self::new(addr, security, options);
        operator.reconnect().await?;
        Ok(operator)
    }

    /// Dials and says nothing: what comes first is the script's affair.
    pub async fn dial(
        addr: &str,
        security: &Security,
        options: OperatorOptions,
    ) -> Result<Self, Status> {
        let mut operator = Self::new(addr, security, options);
        operator.open(None).await?;
        Ok(operator)
    }

    /// An operator that has not dialled yet: set its policies, then
    /// [`reconnect`](Self::reconnect).
    #[must_use]
    pub fn new(addr: &str, security: &Security, options: OperatorOptions) -> Self {
        Self {
            addr: addr.to_owned(),
            security: security.clone(),
            shared: Arc::new(Shared::new(options)),
            stream: None,
        }
    }

    /// Opens a new session for the same cluster, and drops the old one if it
    /// still stands. Drains go on over it; final acks of nodes that are still
    /// marked are said again.
    pub async fn reconnect(&mut self) -> Result<(), Status> {
        let hello = self.hello();
        self.open(Some(hello)).await?;
        let patience = self.shared.options.patience;
        let greeted = |state: &State| state.hellos > 0 || state.ended.is_some();
        self.wait_for("the Hello ack", greeted, patience)
            .await
            .map_err(|error| Status::deadline_exceeded(error.to_string()))?;
        match self.ended() {
            Some(status) => Err(status),
            None => Ok(()),
        }
    }

    /// Dials elsewhere from the next [`reconnect`](Self::reconnect) on: a shard
    /// that came back on another port.
    pub fn set_addr(&mut self, addr: &str) {
        addr.clone_into(&mut self.addr);
    }

    async fn open(&mut self, first: Option<OperatorMessage>) -> Result<(), Status> {
        let (connection, channel) =
            Connection::dial(&self.addr, &self.security, &self.shared.options).await?;
        self.abort().await;
        let (sender, outgoing) = mpsc::unbounded_channel();
        let outbox = sender.downgrade();
        let mut number = 0;
        self.shared.state.send_modify(|state| {
            state.begin_session();
            number = state.session;
            // The receiver lives as long as the reader, which has not begun.
            let repeated = first.iter().flat_map(|_| state.final_acks());
            let repeated = repeated.map(|ack| message(Payload::ReclaimAck(ack.clone())));
            for frame in first.iter().cloned().chain(repeated) {
                let _ = sender.send(frame);
            }
        });
        self.shared.set_outbox(Some(sender));
        self.shared.stalled.send_replace(false);
        let session = Session { number, shared: self.shared.clone(), outbox };
        self.stream = Some((connection, tokio::spawn(session.run(channel, outgoing))));
        Ok(())
    }

    /// The Hello of this operator.
    #[must_use]
    pub fn hello(&self) -> OperatorMessage {
        let options = &self.shared.options;
        message(Payload::Hello(Hello {
            cluster_id: options.cluster.clone(),
            protocol_version: options.protocol_version.clone(),
            features: options.features.clone(),
        }))
    }

    /// Says Hello again, as an operator does that has heard nothing for a while.
    pub fn say_hello(&self) -> Result<(), Error> {
        self.send(self.hello())
    }

    /// Sends any frame, however wrong.
    pub fn send(&self, frame: OperatorMessage) -> Result<(), Error> {
        if self.shared.send(frame) { Ok(()) } else { Err(self.no_session()) }
    }

    /// Sends a roll-up as it is, without waiting for an answer.
    pub fn send_roll_up(&self, roll_up: ClusterCapacityNeeds) -> Result<(), Error> {
        self.send(message(Payload::Rollup(roll_up)))
    }

    /// Sends these needs as the cluster's demand of now and waits for the answer
    /// to just that roll-up.
    pub async fn roll_up(&self, needs: Vec<CapacityNeed>) -> Result<Answer, Error> {
        let roll_up = ClusterCapacityNeeds {
            cluster_id: self.shared.options.cluster.clone(),
            timestamp_unix_nanos: self.shared.next_timestamp(),
            needs,
        };
        let timestamp = roll_up.timestamp_unix_nanos;
        self.send_roll_up(roll_up)?;
        self.answer_to(timestamp).await
    }

    /// Now in unix nanoseconds, but later than every timestamp before it.
    #[must_use]
    pub fn next_timestamp(&self) -> i64 {
        self.shared.next_timestamp()
    }

    /// Waits for the answer to the roll-up of this timestamp.
    pub async fn answer_to(&self, timestamp_unix_nanos: i64) -> Result<Answer, Error> {
        let answered = |state: &State| {
            state.answers.contains_key(&timestamp_unix_nanos) || state.ended.is_some()
        };
        self.wait_for("the answer to a roll-up", answered, self.shared.options.patience).await?;
        let answer = self.read(|state| state.answers.get(&timestamp_unix_nanos).cloned());
        answer.ok_or_else(|| self.no_session())
    }

    fn no_session(&self) -> Error {
        self.ended().map_or(Error::NoSession, Error::Ended)
    }

    /// How to answer bootstrap requests from now on; by default with
    /// [`Bootstrap::Unique`].
    pub fn on_bootstrap(
        &self,
        policy: impl Fn(&BootstrapRequest) -> Bootstrap + Send + Sync + 'static,
    ) {
        self.shared.set_policies(|policies| policies.bootstrap = Arc::new(policy));
    }

    /// How to answer reclaim instructions from now on; by default with a drain
    /// that takes no time.
    pub fn on_reclaim(
        &self,
        policy: impl Fn(&ReclaimInstruction) -> Reclaim + Send + Sync + 'static,
    ) {
        self.shared.set_policies(|policies| policies.reclaim = Arc::new(policy));
    }

    /// Ends a drain now, with all its nodes drained, and says so. False if no
    /// such drain runs.
    pub fn finish_reclaim(&self, instruction: &str) -> bool {
        self.shared.finish(instruction, true)
    }

    /// This session's frames so far.
    #[must_use]
    pub fn frames(&self) -> Vec<ShardMessage> {
        self.read(|state| state.frames.clone())
    }

    /// Looks at what is known now.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.borrow())
    }

    /// Waits until the condition holds, looking at each change; `wanted` says
    /// what for, should it not come.
    pub async fn wait_for(
        &self,
        wanted: &'static str,
        mut condition: impl FnMut(&State) -> bool,
        within: Duration,
    ) -> Result<(), Error> {
        self.find(wanted, |state| condition(state).then_some(()), within).await
    }

    /// Waits until there is something to find.
    pub async fn find<T>(
        &self,
        wanted: &'static str,
        mut look: impl FnMut(&State) -> Option<T>,
        within: Duration,
    ) -> Result<T, Error> {
        let mut found = None;
        let mut changes = self.shared.state.subscribe();
        let search = changes.wait_for(|state| {
            found = look(state);
            found.is_some()
        });
        // The sender lives in `shared`, so the wait ends by finding or in time.
        let in_time = timeout(within, search).await.is_ok();
        found.filter(|_| in_time).ok_or_else(|| Error::Late {
            waited: within,
            wanted,
            seen: self.read(State::summary),
        })
    }

    /// Waits for one frame more than there are now, or the end of the session.
    pub async fn next_frame(&self, within: Duration) -> Result<(), Error> {
        let known = self.read(State::total);
        let more = |state: &State| state.total() > known || state.ended.is_some();
        self.wait_for("one more frame", more, within).await
    }

    /// Stops reading, so that the shard's frames pile up in the transport and
    /// then before it.
    pub fn stall(&self) {
        self.shared.stalled.send_replace(true);
    }

    /// Reads on.
    pub fn resume(&self) {
        self.shared.stalled.send_replace(false);
    }

    /// Half-closes: says that nothing more will come and reads on to the end.
    pub fn disconnect(&self) {
        self.shared.set_outbox(None);
    }

    /// Drops the connection without another word, as a crash does, and returns
    /// when its socket is closed.
    pub async fn abort(&mut self) {
        let Some((connection, reader)) = self.stream.take() else { return };
        reader.abort();
        // A reader that was cut is what was asked for.
        let _ = reader.await;
        // Before the outbox goes, for its end is a half-close.
        connection.cut().await;
        self.shared.set_outbox(None);
        if self.ended().is_none() {
            let session = self.read(|state| state.session);
            self.shared.end(session, Status::cancelled("dropped by the script"));
        }
    }

    /// How this session ended; none while it stands.
    #[must_use]
    pub fn ended(&self) -> Option<Status> {
        self.read(|state| state.ended.clone())
    }

    /// Waits for the end of this session.
    pub async fn wait_ended(&self, within: Duration) -> Result<Status, Error> {
        self.find("the end of the session", |state| state.ended.clone(), within).await
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.shared.retire();
        if let Some((connection, reader)) = self.stream.take() {
            drop(connection);
            reader.abort();
        }
    }
}
