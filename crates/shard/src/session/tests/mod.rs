//! The session server over the network, row by row of shard chapter §12.

mod blobs;
mod greeting;
mod instructions;
mod replacing;
mod replay;
mod rig;
mod roll_ups;
mod stalled;
