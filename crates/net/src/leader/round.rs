//! One question to all replicas in turn.

use tokio::time::Instant;

use super::{
    Replicas,
    attempt::{Attempt, Turn},
    queue::Queue,
};

/// One question, until somebody answers it:
///
/// ```
/// # use bigfleet_net::leader::{Attempt, Round, Turn};
/// # async fn call(_: &Attempt) -> Result<u8, tonic::Status> { Ok(0) }
/// # async fn ask(mut round: Round<'_>) -> Option<u8> {
/// while let Some(attempt) = round.next_attempt() {
///     match call(&attempt).await {
///         Ok(answer) => {
///             round.found(attempt);
///             return Some(answer);
///         }
///         Err(status) => round.missed(attempt, Turn::after(&status)),
///     }
/// }
/// # None }
/// ```
#[derive(Debug)]
pub struct Round<'a> {
    pub(super) replicas: &'a mut Replicas,
    pub(super) queue: Queue,
    pub(super) deadline: Instant,
}

impl Round<'_> {
    /// The next replica to ask; none if there is nobody left, or no time.
    #[must_use]
    pub fn next_attempt(&mut self) -> Option<Attempt> {
        loop {
            let (target, believed) = self.queue.next()?;
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let within = self.queue.share(left, believed);
            if let Some(channel) = self.replicas.dial(&target) {
                return Some(Attempt { target, channel, within });
            }
        }
    }

    /// This one answered: it is asked first from now on.
    pub fn found(self, attempt: Attempt) {
        self.replicas.leader = Some((attempt.target, attempt.channel));
    }

    /// This one did not answer as it should.
    pub fn missed(&mut self, attempt: Attempt, turn: Turn) {
        if self.replicas.leader.as_ref().is_some_and(|(leader, _)| *leader == attempt.target) {
            self.replicas.leader = None;
        }
        self.queue.asked(attempt.target);
        match turn {
            Turn::Next => {}
            Turn::Named(addr) => self.queue.hinted(&addr),
            Turn::Stop => self.queue.clear(),
        }
    }
}
