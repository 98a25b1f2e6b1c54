//! The frame of every answer: what it says of itself, and what it says instead.

mod answer;
pub(crate) mod params;
mod refusal;

pub use self::refusal::Source;
pub(crate) use self::{
    answer::{Answer, Asked},
    params::{InPath, Params},
    refusal::Refusal,
};
