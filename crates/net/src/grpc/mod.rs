//! gRPC defaults: one server and one client for every edge.
//!
//! Message limits belong to the generated types, not to the transport, and
//! the library's default of 4 MiB is too small for a roll-up: wrap every
//! generated server and client in [`message_limits!`](crate::message_limits).

mod client;
mod code;
mod connection;
mod deadline;
mod health;
mod server;

use std::time::Duration;

pub use bigfleet_wire::MAX_MESSAGE_BYTES;
pub use client::{
    CONNECT_TIMEOUT, check_address, connect, connect_lazy, connect_lazy_at, connect_tuned,
};
pub use code::code_name;
pub use connection::ConnectionLimits;
pub use deadline::Deadline;
pub use server::GrpcServer;

/// An idle connection is pinged after this time, from either end.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// A connection whose ping is not answered for this time is dropped.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Sets the message limit of 256 MiB, both ways, on a generated server or
/// client:
///
/// ```
/// use bigfleet_net::message_limits;
/// use bigfleet_wire::v1alpha1::shard_client::ShardClient;
///
/// # fn client(channel: tonic::transport::Channel) {
/// let client = message_limits!(ShardClient::new(channel));
/// # }
/// ```
#[macro_export]
macro_rules! message_limits {
    ($generated:expr) => {
        $generated
            .max_decoding_message_size($crate::grpc::MAX_MESSAGE_BYTES)
            .max_encoding_message_size($crate::grpc::MAX_MESSAGE_BYTES)
    };
}
