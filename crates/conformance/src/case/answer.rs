//! What came back from a mutation, and what should have.

use bigfleet_net::grpc::code_name;
use bigfleet_wire::v1alpha1::{Machine, TransitionAck};
use tonic::{Code, Status};

use crate::{ensure, fail, outcome::Outcome};

/// The longest operation id.
const LONGEST_ID: usize = 64;

/// An acceptance.
#[derive(Debug, Clone)]
pub struct Ack {
    /// The operation.
    pub id: String,
    /// The machine at acceptance.
    pub machine: Machine,
}

/// What a mutation came to.
#[derive(Debug)]
pub struct Answer {
    call: String,
    machine: String,
    result: Result<TransitionAck, Status>,
}

impl Answer {
    pub(super) fn new(rpc: &str, machine: &str, result: Result<TransitionAck, Status>) -> Self {
        Self { call: format!("{rpc} of {machine:?}"), machine: machine.to_owned(), result }
    }

    /// The status.
    #[must_use]
    pub fn code(&self) -> Code {
        self.result.as_ref().map_or_else(Status::code, |_| Code::Ok)
    }

    fn shown(&self) -> String {
        match &self.result {
            Ok(_) => "OK".to_owned(),
            Err(status) => format!("{} ({})", code_name(status.code()), status.message()),
        }
    }

    /// It must be accepted, with an operation id and the machine.
    pub fn accepted(self) -> Outcome<Ack> {
        let ack = match self.result {
            Ok(ack) => ack,
            Err(_) => fail!("{} was refused: {}", self.call, self.shown()),
        };
        let printable = ack.operation_id.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        ensure!(
            !ack.operation_id.is_empty() && ack.operation_id.len() <= LONGEST_ID && printable,
            "{}: operation_id {:?} is not 1 to {LONGEST_ID} printable ASCII characters",
            self.call,
            ack.operation_id
        );
        let Some(machine) = ack.machine else { fail!("{}: the ack shows no machine", self.call) };
        ensure!(
            machine.id == self.machine,
            "{}: the ack shows machine {:?}",
            self.call,
            machine.id
        );
        Ok(Ack { id: ack.operation_id, machine })
    }

    /// It must be refused as stale, and for nothing else.
    pub fn fenced(&self) -> Outcome {
        self.refused(&[Code::FailedPrecondition])
    }

    /// It must be refused with one of these.
    pub fn refused(&self, codes: &[Code]) -> Outcome {
        let due: Vec<_> = codes.iter().map(|&code| code_name(code)).collect();
        ensure!(
            codes.contains(&self.code()),
            "{} must answer {}, not {}",
            self.call,
            due.join(" or "),
            self.shown()
        );
        Ok(())
    }

    /// The fence must let it pass, whatever becomes of it then.
    pub fn passed_fence(&self) -> Outcome {
        ensure!(
            self.code() != Code::FailedPrecondition,
            "{} was fenced: {}",
            self.call,
            self.shown()
        );
        Ok(())
    }
}
