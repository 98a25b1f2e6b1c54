//! One group of replicas that agree on one log (coordinator chapter §4).

mod codec;
mod entropy;
mod fleet;
mod formation;
mod handle;
mod lease;
mod lifecycle;
mod log_store;
mod membership;
mod message;
mod network;
mod observe;
mod peers;
mod propose;
mod pulse;
mod replica;
mod restore;
mod running;
#[cfg(test)]
mod sim;
mod state_store;
mod timers;
mod transport;
mod types;
mod upkeep;

pub use entropy::Entropy;
pub use fleet::coordinator_term;
pub use handle::{Config, Consensus, Leadership, StartError, World};
pub use message::{Answer, CallError, Envelope, Request, Response, Transport};
pub use peers::{Joiner, MembershipError, Peers, Phase, Status};
pub use propose::{Committed, ProposeError};
pub use restore::{Restore, RestoreError};
pub use timers::{Compaction, Timers};
pub use transport::{ConsensusServer, ConsensusService, GrpcTransport, JoinAddr};
pub use types::{Member, MemberId, Outcome};
