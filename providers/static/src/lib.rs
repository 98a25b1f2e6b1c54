//! Bare metal from a file.
