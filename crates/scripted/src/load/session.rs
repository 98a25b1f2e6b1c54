//! One session of a load: one task, a few numbers, no memory of what it heard.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bigfleet_model::ClusterId;
use bigfleet_net::message_limits;
use bigfleet_wire::v1alpha1::{
    Acknowledgement, BootstrapBlobResponse, ClusterCapacityNeeds, Hello, OperatorMessage,
    ReclaimAck, ShardMessage, operator_message::Payload, shard_client::ShardClient,
    shard_message::Payload as Down,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};

use super::{
    demand::{Catalogue, Demand},
    options::LoadOptions,
    tally::Tally,
};
use crate::operator::{FINAL_RECLAIM_ACK, NEED_STATUS, message};

/// Frames that may wait for the transport; the next is dropped and counted, as
/// an operator does.
const OUTBOX: usize = 32;

/// Roll-ups that may wait for their answer before the oldest is given up.
const OUTSTANDING: usize = 64;

/// Where the load stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// Sessions are being opened.
    Opening,
    /// Roll-ups are sent from the one instant to the other.
    Sending(Instant, Instant),
    /// That time is up: send what is overdue and leave with the last answer.
    Ending(Instant, Instant),
    /// Leave now.
    Over,
}

/// What all sessions share.
pub(super) struct Common {
    pub(super) options: LoadOptions,
    pub(super) catalogue: Catalogue,
    pub(super) tally: Tally,
    /// An instant on both clocks: timestamps are unix time that never steps.
    pub(super) epoch: (Instant, i64),
}

impl Common {
    fn timestamp(&self) -> i64 {
        let elapsed = i64::try_from(self.epoch.0.elapsed().as_nanos()).unwrap_or(i64::MAX);
        self.epoch.1.saturating_add(elapsed)
    }
}

pub(super) struct Session {
    common: Arc<Common>,
    number: usize,
    cluster: ClusterId,
    demand: Demand,
    outbox: mpsc::Sender<OperatorMessage>,
    /// Timestamps of roll-ups without an answer, oldest first.
    outstanding: VecDeque<i64>,
    last_timestamp: i64,
    /// Final acks and when they are due.
    drains: VecDeque<(Instant, ReclaimAck)>,
    /// Roll-ups sent or skipped so far.
    turns: u64,
}

/// Opens a session, plays it and tallies how it went. Dropping `opened` tells
/// that the session stands or never will.
pub(super) async fn run(
    common: Arc<Common>,
    number: usize,
    channel: Channel,
    mut phase: watch::Receiver<Phase>,
    opened: impl Send,
) {
    let cluster = ClusterId::from(common.options.cluster(number));
    let (outbox, outgoing) = mpsc::channel(OUTBOX);
    let hello = Hello {
        cluster_id: cluster.to_string(),
        protocol_version: "v1alpha1".to_owned(),
        features: vec![FINAL_RECLAIM_ACK.to_owned(), NEED_STATUS.to_owned()],
    };
    let options = &common.options;
    let seed = options.seed.wrapping_mul(0x1000_0001).wrapping_add(number as u64);
    let session = Session {
        demand: Demand::new(&common.catalogue, options.needs_per_roll_up, seed),
        common: common.clone(),
        number,
        cluster,
        outbox,
        outstanding: VecDeque::new(),
        last_timestamp: 0,
        drains: VecDeque::new(),
        turns: 0,
    };
    session.send(Payload::Hello(hello));
    let begun = Instant::now();
    let greeted = async {
        let mut client = message_limits!(ShardClient::new(channel));
        let mut stream = client.session(ReceiverStream::new(outgoing)).await?.into_inner();
        match stream.message().await? {
            Some(ShardMessage { payload: Some(Down::Ack(_)) }) => Ok(stream),
            _ => Err(Status::internal("the first frame is no Hello ack")),
        }
    };
    let too_late = async {
        // A load that is dropped takes its sessions along.
        let _ = phase.wait_for(|phase| !matches!(phase, Phase::Opening)).await;
        Err(Status::deadline_exceeded("no Hello ack before the load began"))
    };
    let greeted = tokio::select! {
        greeted = greeted => greeted,
        late = too_late => late,
    };
    match greeted {
        Ok(stream) => {
            common.tally.hello.record(begun.elapsed());
            common.tally.opened.one();
            drop(opened);
            session.play(stream, phase).await;
        }
        Err(status) => common.tally.failed(&status),
    }
}

impl Session {
    fn send(&self, payload: Payload) -> bool {
        let sent = self.outbox.try_send(message(payload)).is_ok();
        if !sent {
            self.common.tally.dropped.one();
        }
        sent
    }

    async fn play(
        mut self,
        mut stream: Streaming<ShardMessage>,
        mut phase: watch::Receiver<Phase>,
    ) {
        let tally = &self.common.clone().tally;
        loop {
            let now = *phase.borrow_and_update();
            let due = self.due(now);
            let ending = matches!(now, Phase::Ending(..));
            let settled = ending && due.is_none() && self.outstanding.is_empty();
            if settled || matches!(now, Phase::Over) {
                break;
            }
            let drained = self.drains.front().map(|(at, _)| *at);
            tokio::select! {
                frame = stream.message() => match frame {
                    Ok(Some(frame)) => self.receive(frame),
                    ended => {
                        let closed = || Status::cancelled("closed by the shard");
                        tally.failed(&ended.err().unwrap_or_else(closed));
                        tally.ended.one();
                        break;
                    }
                },
                () = until(due) => self.roll_up(due),
                () = until(drained) => self.finish_drain(),
                changed = phase.changed() => if changed.is_err() { break },
            }
        }
        tally.unanswered.add(self.outstanding.len() as u64);
    }

    /// When the next roll-up is to be sent: sessions take turns at the given
    /// rate, however long answers take.
    fn due(&self, phase: Phase) -> Option<Instant> {
        let (Phase::Sending(begin, end) | Phase::Ending(begin, end)) = phase else {
            return None;
        };
        let options = &self.common.options;
        let turn = self.number as f64 + self.turns as f64 * options.sessions as f64;
        let due = begin + Duration::from_secs_f64(turn / options.roll_ups_per_second);
        (due < end).then_some(due)
    }

    fn roll_up(&mut self, due: Option<Instant>) {
        let common = self.common.clone();
        self.turns += 1;
        common.tally.behind.record(due.map_or(Duration::ZERO, |due| due.elapsed()));
        let churn = common.options.churn_per_mille;
        let needs = self.demand.next(&common.catalogue, &self.cluster, churn);
        self.last_timestamp = common.timestamp().max(self.last_timestamp + 1);
        let roll_up = ClusterCapacityNeeds {
            cluster_id: self.cluster.to_string(),
            timestamp_unix_nanos: self.last_timestamp,
            needs,
        };
        if !self.send(Payload::Rollup(roll_up)) {
            return;
        }
        common.tally.sent.one();
        self.outstanding.push_back(self.last_timestamp);
        if self.outstanding.len() > OUTSTANDING {
            self.outstanding.pop_front();
            common.tally.unanswered.one();
        }
    }

    fn receive(&mut self, frame: ShardMessage) {
        let tally = &self.common.tally;
        match frame.payload {
            Some(Down::Ack(ack)) => self.answered(&ack),
            Some(Down::BootstrapRequest(request)) => {
                tally.bootstraps.one();
                let user_data = format!("join {} as {}", self.cluster, request.machine_id);
                self.send(Payload::BootstrapResponse(BootstrapBlobResponse {
                    request_id: request.request_id,
                    user_data: user_data.into_bytes(),
                    ..Default::default()
                }));
            }
            Some(Down::ReclaimInstruction(instruction)) => {
                tally.reclaims.one();
                let nodes = i32::try_from(instruction.nodes.len()).unwrap_or(i32::MAX);
                let ack = ReclaimAck {
                    instruction_id: instruction.instruction_id,
                    nodes_started: nodes,
                    ..Default::default()
                };
                self.send(Payload::ReclaimAck(ack.clone()));
                let last = ReclaimAck { nodes_drained: nodes, finished: true, ..ack };
                self.drains.push_back((Instant::now() + self.common.options.drain, last));
            }
            _ => tally.other_frames.one(),
        }
    }

    fn finish_drain(&mut self) {
        if let Some((_, ack)) = self.drains.pop_front() {
            self.send(Payload::ReclaimAck(ack));
        }
    }

    fn answered(&mut self, ack: &Acknowledgement) {
        let tally = &self.common.tally;
        let refusal = ack.echo.strip_prefix("rollup_rejected: ");
        if ack.echo != "rollup" && refusal.is_none() {
            return tally.other_frames.one();
        }
        let timestamp = ack.rollup_timestamp_unix_nanos;
        let Some(place) = self.outstanding.iter().position(|sent| *sent == timestamp) else {
            return tally.stray.one();
        };
        let took = self.common.timestamp().saturating_sub(timestamp);
        tally.latency.record(Duration::from_nanos(took.unsigned_abs()));
        // Older ones were replaced while they waited, and get no answer.
        tally.superseded.add(place as u64);
        self.outstanding.drain(..=place);
        match refusal {
            Some(text) => tally.refused(text),
            None if ack.held => tally.held.one(),
            None => tally.accepted.one(),
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
