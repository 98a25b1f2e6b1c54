//! The kit over real gRPC, and its invariants (provider chapter §12).

mod lifecycle;
mod rig;
