//! Acknowledgements.

use bigfleet_wire::v1alpha1::{Acknowledgement, ShardMessage, shard_message::Payload};

use super::{cut, host::Host};

/// Most of a refusal that is sent, in bytes.
const MAX_REFUSAL: usize = 1024;

/// Acks of this moment: they carry epoch and term, for incident review.
pub(super) struct Acks {
    coordinator_term: i64,
    shard_epoch: i64,
}

impl Acks {
    pub(super) fn of(host: &impl Host) -> Self {
        Self { coordinator_term: host.coordinator_term(), shard_epoch: host.epoch() }
    }

    pub(super) fn hello(&self) -> ShardMessage {
        message(self.echo("hello"))
    }

    /// The replay after Hello is complete.
    pub(super) fn resync(&self) -> ShardMessage {
        message(self.echo("resync"))
    }

    pub(super) fn roll_up(&self, rollup_timestamp_unix_nanos: i64, held: bool) -> ShardMessage {
        message(Acknowledgement { rollup_timestamp_unix_nanos, held, ..self.echo("rollup") })
    }

    pub(super) fn rejected(&self, rollup_timestamp_unix_nanos: i64, error: String) -> ShardMessage {
        let echo = format!("rollup_rejected: {}", cut(error, MAX_REFUSAL));
        message(Acknowledgement { rollup_timestamp_unix_nanos, ..self.echo(echo) })
    }

    fn echo(&self, echo: impl Into<String>) -> Acknowledgement {
        Acknowledgement {
            echo: echo.into(),
            coordinator_term: self.coordinator_term,
            shard_epoch: self.shard_epoch,
            ..Default::default()
        }
    }
}

fn message(ack: Acknowledgement) -> ShardMessage {
    ShardMessage { payload: Some(Payload::Ack(ack)) }
}
