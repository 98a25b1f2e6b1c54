//! The order in which frames leave (shard chapter §12): two lanes, no lock, no
//! clock, no network.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::Arc,
};

use bigfleet_wire::v1alpha1::{ShardMessage, shard_message::Payload};
use tokio::sync::watch;

use super::instruction::Progress;

/// Most control frames that may wait.
pub(super) const CONTROL_CAP: usize = 1024;

/// Most control frames in a row over state frames that wait.
const CONTROL_RUN: u32 = 16;

/// The control lane is full: the operator does not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Frames that wait for the writer. Empty ones hold no memory: most sessions are
/// idle most of the time.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Acks, blob requests, reclaim instructions.
    control: VecDeque<Outgoing>,
    /// Places of the state lane, in the order in which they were taken.
    places: VecDeque<Place>,
    /// The latest frame per `supersedes_key`.
    latest: HashMap<Arc<str>, ShardMessage>,
    /// Control frames taken since a state frame had to wait for them.
    run: u32,
}

/// A frame, and who wants to know that it was written.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) message: ShardMessage,
    pub(super) progress: Option<watch::Sender<Progress>>,
}

impl From<ShardMessage> for Outgoing {
    fn from(message: ShardMessage) -> Self {
        Self { message, progress: None }
    }
}

#[derive(Debug)]
enum Place {
    Key(Arc<str>),
    /// Behind everything that was queued before it, unlike a control frame.
    Marker(Box<ShardMessage>),
}

impl Lanes {
    /// Queues an ack, a blob request or an instruction.
    pub(super) fn push_control(&mut self, frame: Outgoing) -> Result<(), Full> {
        if self.control.len() >= CONTROL_CAP {
            return Err(Full);
        }
        self.control.push_back(frame);
        Ok(())
    }

    /// Queues a state frame, or replaces the one of the same key in its place.
    pub(super) fn put_state(&mut self, key: String, message: ShardMessage) {
        match self.latest.entry(key.into()) {
            Entry::Occupied(mut known) => drop(known.insert(message)),
            Entry::Vacant(unknown) => {
                self.places.push_back(Place::Key(unknown.key().clone()));
                unknown.insert(message);
            }
        }
    }

    /// Queues a frame behind every state frame that waits now.
    pub(super) fn push_marker(&mut self, message: ShardMessage) {
        self.places.push_back(Place::Marker(Box::new(message)));
    }

    /// The next frame to write.
    pub(super) fn pop(&mut self) -> Option<Outgoing> {
        let state_waits = !self.places.is_empty();
        if (!state_waits || self.run < CONTROL_RUN)
            && let Some(frame) = self.control.pop_front()
        {
            self.run = if state_waits { self.run + 1 } else { 0 };
            self.let_go();
            return Some(frame);
        }
        self.run = 0;
        let message = match self.places.pop_front()? {
            // Each key has one place and each place its frame.
            Place::Key(key) => self.latest.remove(&key)?,
            Place::Marker(message) => *message,
        };
        self.let_go();
        Some(message.into())
    }

    /// Takes a request or an instruction that has not been written back out.
    pub(super) fn take_back(&mut self, id: &str) -> bool {
        let place = self.control.iter().position(|frame| id_of(&frame.message) == Some(id));
        if let Some(place) = place {
            self.control.remove(place);
            self.let_go();
        }
        place.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.control.len() + self.places.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.places.is_empty()
    }

    /// A replay fills the lanes once in a session's life; what it took is given
    /// back when it has gone out.
    fn let_go(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }
}

/// Of a frame that is answered by its id.
fn id_of(message: &ShardMessage) -> Option<&str> {
    match message.payload.as_ref()? {
        Payload::BootstrapRequest(request) => Some(&request.request_id),
        Payload::ReclaimInstruction(instruction) => Some(&instruction.instruction_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bigfleet_wire::v1alpha1::{
        Acknowledgement, BootstrapRequest, NodeStateUpdate, ReclaimInstruction,
    };
    use proptest::prelude::*;

    use super::*;

    fn ack(echo: &str) -> ShardMessage {
        let ack = Acknowledgement { echo: echo.to_owned(), ..Default::default() };
        ShardMessage { payload: Some(Payload::Ack(ack)) }
    }

    fn node(key: &str, version: usize) -> ShardMessage {
        let update = NodeStateUpdate {
            supersedes_key: key.to_owned(),
            node_name: version.to_string(),
            ..Default::default()
        };
        ShardMessage { payload: Some(Payload::NodeStateUpdate(update)) }
    }

    fn name(message: &ShardMessage) -> String {
        match message.payload.as_ref().unwrap() {
            Payload::Ack(ack) => ack.echo.clone(),
            Payload::NodeStateUpdate(update) => {
                format!("{}@{}", update.supersedes_key, update.node_name)
            }
            _ => id_of(message).unwrap().to_owned(),
        }
    }

    fn drain(lanes: &mut Lanes) -> Vec<String> {
        std::iter::from_fn(|| lanes.pop()).map(|frame| name(&frame.message)).collect()
    }

    #[test]
    fn a_newer_frame_takes_the_place_of_the_older() {
        let mut lanes = Lanes::default();
        for (version, key) in ["a", "b", "a", "c", "b"].into_iter().enumerate() {
            lanes.put_state(key.to_owned(), node(key, version));
        }
        assert_eq!(drain(&mut lanes), ["a@2", "b@4", "c@3"]);
        lanes.put_state("b".to_owned(), node("b", 9));
        lanes.put_state("a".to_owned(), node("a", 8));
        assert_eq!(drain(&mut lanes), ["b@9", "a@8"], "places end with the frame");
    }

    #[test]
    fn control_goes_first_but_not_more_than_sixteen_in_a_row() {
        let mut lanes = Lanes::default();
        for key in ["x", "y"] {
            lanes.put_state(key.to_owned(), node(key, 0));
        }
        for number in 0..40 {
            lanes.push_control(ack(&number.to_string()).into()).unwrap();
        }
        let order = drain(&mut lanes);
        let control = order.iter().filter(|name| !name.contains('@')).cloned();
        assert!(control.eq((0..40).map(|number: i32| number.to_string())));
        assert_eq!(order[16], "x@0");
        assert_eq!(order[33], "y@0");
    }

    #[test]
    fn control_alone_uses_up_no_turn() {
        let mut lanes = Lanes::default();
        for number in 0..30 {
            lanes.push_control(ack(&number.to_string()).into()).unwrap();
        }
        (0..20).for_each(|_| drop(lanes.pop()));
        lanes.put_state("x".to_owned(), node("x", 0));
        assert_eq!(drain(&mut lanes).pop().unwrap(), "x@0");
    }

    #[test]
    fn shard_inv_21_the_marker_stays_behind_the_replay() {
        let mut lanes = Lanes::default();
        lanes.put_state("a".to_owned(), node("a", 0));
        lanes.put_state("b".to_owned(), node("b", 0));
        lanes.push_marker(ack("resync"));
        lanes.push_control(ack("rollup").into()).unwrap();
        lanes.put_state("a".to_owned(), node("a", 1));
        lanes.put_state("c".to_owned(), node("c", 0));
        assert_eq!(drain(&mut lanes), ["rollup", "a@1", "b@0", "resync", "c@0"]);
    }

    #[test]
    fn a_full_control_lane_refuses_at_once() {
        let mut lanes = Lanes::default();
        for _ in 0..CONTROL_CAP {
            lanes.push_control(ack("").into()).unwrap();
        }
        assert_eq!(lanes.push_control(ack("").into()), Err(Full));
        lanes.put_state("x".to_owned(), node("x", 0));
        assert_eq!(lanes.len(), CONTROL_CAP + 1);
    }

    #[test]
    fn what_was_not_written_can_be_taken_back() {
        let mut lanes = Lanes::default();
        let request = BootstrapRequest { request_id: "r".to_owned(), ..Default::default() };
        let instruction =
            ReclaimInstruction { instruction_id: "i".to_owned(), ..Default::default() };
        for payload in
            [Payload::BootstrapRequest(request), Payload::ReclaimInstruction(instruction)]
        {
            lanes.push_control(ShardMessage { payload: Some(payload) }.into()).unwrap();
        }
        assert!(!lanes.take_back(""));
        assert!(lanes.take_back("i"));
        assert!(!lanes.take_back("i"));
        assert_eq!(drain(&mut lanes), ["r"]);
        assert!(!lanes.take_back("r"));
    }

    #[test]
    fn empty_lanes_hold_no_memory() {
        let mut lanes = Lanes::default();
        for key in 0..1000 {
            lanes.put_state(key.to_string(), node("", key));
        }
        drain(&mut lanes);
        assert_eq!((lanes.places.capacity(), lanes.latest.capacity()), (0, 0));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Control,
        State(u8),
        Marker,
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Control),
            3 => (0..6u8).prop_map(Step::State),
            1 => Just(Step::Marker),
            5 => Just(Step::Pop),
        ]
    }

    proptest! {
        #[test]
        fn shard_inv_21_any_history_keeps_both_orders(
            steps in prop::collection::vec(step(), 0..300),
        ) {
            let mut lanes = Lanes::default();
            let mut control = VecDeque::new();
            // Key and what is to come out at its place.
            let mut state: VecDeque<(Option<u8>, String)> = VecDeque::new();
            let mut run = 0;
            for (number, step) in steps.into_iter().chain(vec![Step::Pop; 700]).enumerate() {
                match step {
                    Step::Control => {
                        lanes.push_control(ack(&number.to_string()).into()).unwrap();
                        control.push_back(number.to_string());
                    }
                    Step::State(key) => {
                        let frame = node(&key.to_string(), number);
                        let expected = name(&frame);
                        lanes.put_state(key.to_string(), frame);
                        match state.iter_mut().find(|(known, _)| *known == Some(key)) {
                            Some((_, place)) => *place = expected,
                            None => state.push_back((Some(key), expected)),
                        }
                    }
                    Step::Marker => {
                        lanes.push_marker(ack(&format!("marker {number}")));
                        state.push_back((None, format!("marker {number}")));
                    }
                    Step::Pop => {
                        let got = lanes.pop().map(|frame| name(&frame.message));
                        let over_state = !state.is_empty();
                        let expected = if !control.is_empty() && (run < 16 || !over_state) {
                            run = if over_state { run + 1 } else { 0 };
                            control.pop_front()
                        } else {
                            run = 0;
                            state.pop_front().map(|(_, place)| place)
                        };
                        prop_assert_eq!(got, expected);
                    }
                }
                prop_assert_eq!(lanes.len(), control.len() + state.len());
            }
            prop_assert!(lanes.is_empty());
        }
    }
}
