//! One session, from dialling to its end.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use bigfleet_net::{
    grpc::{self, MAX_MESSAGE_BYTES},
    rule::Rule,
    shutdown::Shutdown,
};
use bigfleet_wire::v1alpha1::{Acknowledgement, Hello, ShardMessage, shard_message::Payload};
use futures_util::stream;
use http::uri::PathAndQuery;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};
use tonic::{Code, Request, Status, Streaming, client::Grpc};

use super::{
    FEATURES, PROTOCOL, Session,
    backoff::End,
    codec::SessionCodec,
    lead::Lead,
    liveness::{Due, Liveness},
    outgoing::{Frame, Outgoing, ReclaimAcks},
};
use crate::{
    ack::{Settle, Verdict},
    metrics::{Inflight, RollupPhase},
};

const PATH: PathAndQuery = PathAndQuery::from_static("/bigfleet.v1alpha1.Shard/Session");

/// How long the shard may take to let us in.
const OPEN_WITHIN: Duration = Duration::from_secs(60);

/// How long a half-closed stream may take to end, at an orderly stop.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// One stream and what belongs to it; all of it is dropped with the session.
struct Once<'a> {
    session: &'a Session,
    outgoing: Arc<Outgoing>,
    settle: Arc<Mutex<Settle>>,
    greeted: bool,
    resynced: bool,
}

impl Session {
    fn hello(&self) -> Hello {
        Hello {
            cluster_id: self.parts.settings.cluster_id.clone(),
            protocol_version: PROTOCOL.to_owned(),
            features: FEATURES.map(str::to_owned).into(),
        }
    }

    /// Runs one session to its end; how it ended, for machines and for people.
    pub(super) async fn once(&self, lead: &mut Lead, shutdown: &Shutdown) -> (End, String) {
        let begun = Instant::now();
        let dropped = self.parts.metrics.outbox_dropped.clone();
        let mut once = Once {
            session: self,
            outgoing: Arc::new(Outgoing::new(self.hello(), dropped)),
            settle: Arc::default(),
            greeted: false,
            resynced: false,
        };
        let outgoing = Closing(once.outgoing.clone());
        let status = {
            let mut served = std::pin::pin!(once.serve());
            tokio::select! {
                status = served.as_mut() => status,
                () = lead.superseded() => Status::ok("another replica has the lease"),
                () = shutdown.requested() => {
                    outgoing.0.close();
                    drop(timeout(CLOSE_WITHIN, served).await);
                    Status::ok("we stop")
                }
            }
        };
        let code = Some(status.code()).filter(|code| *code != Code::Ok);
        let end = End { code, greeted: once.greeted, lived: begun.elapsed() };
        (end, status.message().to_owned())
    }
}

impl Once<'_> {
    async fn serve(&mut self) -> Status {
        let stream = match self.open().await {
            Ok(stream) => stream,
            Err(status) => return status,
        };
        let parts = &self.session.parts;
        let _connected = Inflight::of(&parts.metrics.session_connected);
        tracing::info!(shard = parts.settings.shard_addr, "session stands");
        parts.downstream.session_began(ReclaimAcks::of(&self.outgoing));
        let _ended = Ended(self.session);
        // Beside the reader, for a roll-up may look at the API server first.
        let mut roll_ups = JoinSet::new();
        roll_ups.spawn(roll_ups_into(
            self.outgoing.clone(),
            parts.cycle.clone(),
            parts.metrics.clone(),
            parts.settings.interval,
        ));
        self.read(stream).await
    }

    async fn open(&self) -> Result<Streaming<ShardMessage>, Status> {
        let settings = &self.session.parts.settings;
        let unavailable = |text: String| Status::unavailable(text);
        let channel = grpc::connect(&settings.shard_addr, &settings.security, Rule::any_shard())
            .await
            .map_err(|error| unavailable(error.to_string()))?;
        let mut client = Grpc::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        client.ready().await.map_err(|error| unavailable(error.to_string()))?;
        let frames = frames(self.outgoing.clone(), self.settle.clone());
        let opening = client.streaming(Request::new(frames), PATH, SessionCodec::default());
        let opened = timeout(OPEN_WITHIN, opening).await;
        let opened = opened.map_err(|_| unavailable("the shard does not let us in".to_owned()))?;
        opened.map(tonic::Response::into_inner)
    }

    async fn read(&mut self, mut stream: Streaming<ShardMessage>) -> Status {
        let mut liveness = Liveness::new(Instant::now());
        loop {
            let wake = match liveness.due(Instant::now()) {
                Due::Wait(until) => until,
                Due::Ask => {
                    self.outgoing.hello(self.session.hello());
                    continue;
                }
                Due::GiveUp => return Status::unavailable("the shard has been silent for 60 s"),
            };
            let frame = tokio::select! {
                frame = stream.message() => frame,
                () = sleep_until(wake) => continue,
            };
            match frame {
                Ok(Some(frame)) => {
                    liveness.received(Instant::now());
                    self.dispatch(frame);
                }
                Ok(None) => return Status::ok("the shard closed the session"),
                Err(status) => return status,
            }
        }
    }

    /// Hands a frame on; waits for nothing.
    fn dispatch(&mut self, frame: ShardMessage) {
        let received = self.session.received.fetch_add(1, Ordering::Relaxed);
        let parts = &self.session.parts;
        match frame.payload {
            Some(Payload::Ack(ack)) => self.acknowledged(&ack),
            Some(Payload::BootstrapRequest(request)) => {
                let (render, outgoing) = (parts.render.clone(), self.outgoing.clone());
                // At once, however many there are: the shard waits, and it is only
                // processor time.
                tokio::task::spawn_blocking(move || outgoing.bootstrap(render.render(&request)));
            }
            Some(Payload::NodeStateUpdate(frame)) => parts.downstream.node_state(frame, received),
            Some(Payload::ReclaimInstruction(instruction)) => {
                parts.downstream.reclaim(instruction, received);
            }
            Some(Payload::AvailableCapacity(frame)) => parts.downstream.available_capacity(frame),
            Some(Payload::NeedStatus(frame)) => parts.needs.heard(frame),
            None => tracing::warn!("frame of an unknown kind ignored; is the shard newer than us?"),
        }
    }

    fn acknowledged(&mut self, ack: &Acknowledgement) {
        let parts = &self.session.parts;
        let (echo, term, epoch) = (&*ack.echo, ack.coordinator_term, ack.shard_epoch);
        match echo {
            "hello" => {
                if !self.greeted {
                    tracing::info!(term, epoch, "greeted by the shard");
                }
                self.greeted = true;
                return;
            }
            "resync" => {
                // Only the first says that everything was told in this session.
                if !std::mem::replace(&mut self.resynced, true) {
                    tracing::debug!(term, epoch, "replay complete");
                    parts.downstream.resync();
                    parts.needs.replayed();
                }
                return;
            }
            _ => {}
        }
        let verdict = self.settle.lock().unwrap_or_else(PoisonError::into_inner).answer(ack);
        match verdict {
            Some(Verdict::Accepted(candidates)) => {
                parts.needs.accepted();
                parts.pool.acknowledge(&candidates);
            }
            Some(Verdict::Held) => {
                tracing::warn!(
                    term,
                    epoch,
                    "the shard holds our roll-up back; it looks like a loss"
                );
            }
            Some(Verdict::Refused(reason)) => {
                parts.metrics.rollups_rejected.inc();
                tracing::error!(reason, term, epoch, "the shard refused our roll-up");
                let message = format!("the shard refused a roll-up: {reason}");
                parts.events.warning(parts.ourselves.clone(), "RollupRejected", message);
            }
            None => tracing::debug!(echo, "answer of an unknown kind ignored"),
        }
    }
}

/// Ends the sending half with the session. The transport would keep it, and with it the
/// stream and the connection, for as long as it might still yield something.
struct Closing(Arc<Outgoing>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Tells those downstream that the session is over, however it ends.
struct Ended<'a>(&'a Session);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.parts.downstream.session_ended();
        self.0.parts.needs.forget();
    }
}

/// The sending half. A roll-up counts as sent when it is taken from its slot.
fn frames(
    outgoing: Arc<Outgoing>,
    settle: Arc<Mutex<Settle>>,
) -> impl stream::Stream<Item = Frame> + Send {
    stream::unfold((outgoing, settle), |(outgoing, settle)| async move {
        let frame = outgoing.next().await?;
        if let Frame::RollUp(demand) = &frame {
            let (timestamp, candidates) = (demand.roll_up.timestamp(), demand.candidates.clone());
            let sent =
                settle.lock().unwrap_or_else(PoisonError::into_inner).sent(timestamp, candidates);
            if let Err(error) = sent {
                // A half-close ends the session, and the next one begins anew.
                tracing::error!(%error, "session given up");
                return None;
            }
        }
        Some((frame, (outgoing, settle)))
    })
}

async fn roll_ups_into(
    outgoing: Arc<Outgoing>,
    cycle: Arc<crate::rollup::Cycle>,
    metrics: Arc<crate::Metrics>,
    every: Duration,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(demand) = cycle.next().await {
            let begun = Instant::now();
            outgoing.roll_up(demand);
            metrics.rollup_phase(RollupPhase::Enqueue, begun.elapsed());
        }
    }
}
