//! A whole shard in virtual time: the asynchronous fake on one side, scripted
//! operators over gRPC on the other.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests fail by panicking")]

mod blobs;
mod calls;
mod closed_loop;
mod drains;
mod frames;
mod gates;
mod hints;
mod inventory;
mod life;
mod machines_read;
mod measured;
mod need_status;
mod needs_read;
mod observed;
mod rails;
mod readers;
mod restart;
mod rig;
mod stamps;
mod steady;
mod watched;
