//! When a cordon of ours is lifted.

use std::sync::Arc;

use bigfleet_wire::v1alpha1::MachineState;

/// Where something stands in what was received: the session, and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Order {
    /// The session; counted from 1 in this process.
    pub session: u64,
    /// The receive sequence number.
    pub received: u64,
}

/// The latest frame of a machine, as far as the rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latest {
    /// When it came.
    pub order: Order,
    /// The machine's state.
    pub state: MachineState,
    /// The last instruction that the shard says is over.
    pub ended_instruction: Option<Arc<str>>,
}

/// What was received about one machine, before anything was coalesced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// The latest frame.
    pub latest: Option<Latest>,
    /// The last DRAINING, IDLE or CONFIGURING frame.
    moved: Option<Order>,
    /// The last frame that ends a drain: IDLE, CONFIGURING or `gone`.
    pub unbound: Option<Order>,
}

impl Received {
    /// A frame arrived.
    pub fn frame(&mut self, latest: Latest, gone: bool) {
        use MachineState::{Configuring, Draining, Idle};
        if matches!(latest.state, Draining | Idle | Configuring) {
            self.moved = Some(latest.order);
        }
        if gone || matches!(latest.state, Idle | Configuring) {
            self.unbound = Some(latest.order);
        }
        self.latest = Some(latest);
    }

    /// Whether the shard has shown that the annotated reclaim is over and the machine is ours.
    /// `instructed` is when its instruction came; none if that was in an earlier process.
    ///
    /// A CONFIGURED frame after the instruction alone proves nothing, since instructions overtake
    /// state frames; nor does one of an earlier session.
    #[must_use]
    pub fn returned(&self, annotated: &str, instructed: Option<Order>, session: u64) -> bool {
        let Some(latest) = &self.latest else { return false };
        if latest.order.session != session || latest.state != MachineState::Configured {
            return false;
        }
        if latest.ended_instruction.as_deref() == Some(annotated) {
            return true;
        }
        instructed.is_none_or(|instructed| {
            instructed.session < session
                || self.moved.is_some_and(|moved| instructed < moved && moved < latest.order)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MachineState as S;

    fn at(session: u64, received: u64) -> Order {
        Order { session, received }
    }

    fn frame(received: &mut Received, order: Order, state: MachineState, ended: Option<&str>) {
        let ended_instruction = ended.map(Into::into);
        received.frame(Latest { order, state, ended_instruction }, false);
    }

    #[test]
    fn a_configured_frame_after_the_instruction_alone_proves_nothing() {
        let mut received = Received::default();
        let instructed = Some(at(1, 1));
        frame(&mut received, at(1, 2), S::Configured, None);
        assert!(!received.returned("a", instructed, 1));
        frame(&mut received, at(1, 3), S::Configured, Some("b"));
        assert!(!received.returned("a", instructed, 1));
        frame(&mut received, at(1, 4), S::Configured, Some("a"));
        assert!(received.returned("a", instructed, 1));
    }

    #[test]
    fn a_state_in_between_proves_it_and_one_before_does_not() {
        for state in [S::Draining, S::Idle, S::Configuring] {
            let mut received = Received::default();
            frame(&mut received, at(1, 1), state, None);
            let instructed = Some(at(1, 2));
            frame(&mut received, at(1, 3), S::Configured, None);
            assert!(!received.returned("a", instructed, 1));
            frame(&mut received, at(1, 4), state, None);
            assert!(!received.returned("a", instructed, 1));
            frame(&mut received, at(1, 5), S::Configured, None);
            assert!(received.returned("a", instructed, 1));
        }
        let mut received = Received::default();
        frame(&mut received, at(1, 2), S::Failed, None);
        frame(&mut received, at(1, 3), S::Configured, None);
        assert!(!received.returned("a", Some(at(1, 1)), 1));
    }

    #[test]
    fn an_earlier_session_or_process_proves_it_with_a_frame_of_this_one() {
        let mut received = Received::default();
        let instructed = Some(at(1, 1));
        frame(&mut received, at(1, 2), S::Configured, None);
        assert!(!received.returned("a", instructed, 2), "the frame is of the earlier session too");
        frame(&mut received, at(2, 1), S::Configured, None);
        assert!(received.returned("a", instructed, 2));
        assert!(received.returned("of an earlier process", None, 2));
        assert!(!Received::default().returned("a", None, 2));
    }
}
