//! The live stream (experience chapter §3.2): what shards and the coordinator say, as it comes.
//!
//! However many viewers there are, each shard is watched once; nobody is watched when nobody looks.

mod board;
mod event;
mod feed;
mod hub;
mod subscription;
mod watches;

pub(crate) use self::{event::Topic, hub::Hub, subscription::frames};
