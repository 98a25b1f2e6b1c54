//! The consensus port: gRPC over the same mTLS as every other edge. Only
//! replicas speak it; open, it would be write access to the fleet.

mod client;
mod envelope;
mod join_addr;
mod server;
#[cfg(test)]
mod tests;

pub use client::GrpcTransport;
pub use join_addr::JoinAddr;
pub use server::ConsensusService;

/// The service as it is added to a server.
pub type ConsensusServer = proto::consensus_server::ConsensusServer<ConsensusService>;

mod proto {
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::trivially_copy_pass_by_ref)]
    tonic::include_proto!("bigfleet.coordinator.consensus.v1");
}
