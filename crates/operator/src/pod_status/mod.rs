//! What a waiting pod is told (§4.1).

mod needs;

pub use needs::{Needs, Standing};
