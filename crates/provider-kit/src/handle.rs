//! How a cloud tells the kit what it learns by itself.

use bigfleet_model::MachineId;
use tokio::sync::mpsc;

/// What a backend announced about one host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// It may be taken soon: probability 0.5.
    Rebalance,
    /// It will be taken: probability 0.99.
    Termination,
}

impl Notice {
    /// The interruption probability that the machine shows from now on, at least.
    #[must_use]
    pub const fn probability(self) -> f64 {
        match self {
            Self::Rebalance => 0.5,
            Self::Termination => 0.99,
        }
    }
}

/// Given to [`Cloud::attach`](crate::Cloud::attach). Clones reach the same kit; after
/// its end they do nothing.
#[derive(Clone, Debug)]
pub struct Handle {
    events: mpsc::UnboundedSender<CloudEvent>,
}

#[derive(Clone, Debug)]
pub(crate) enum CloudEvent {
    Notice(MachineId, Notice),
    Sweep,
}

impl Handle {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<CloudEvent>) {
        let (events, receiver) = mpsc::unbounded_channel();
        (Self { events }, receiver)
    }

    /// An interruption notice: raises the machine's probability until it is deleted
    /// or repaired. Notices for machines without a host are ignored.
    pub fn notice(&self, machine: &str, notice: Notice) {
        // Nobody listens once the kit has stopped.
        let _ = self.events.send(CloudEvent::Notice(machine.into(), notice));
    }

    /// Describes the cloud now instead of at the next turn: an inventory changed.
    pub fn sweep(&self) {
        let _ = self.events.send(CloudEvent::Sweep);
    }
}
