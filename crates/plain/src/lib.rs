//! What the command lines print alike: tables, ages, wire values as people write them.

pub mod need;
pub mod table;
pub mod text;
pub mod when;
