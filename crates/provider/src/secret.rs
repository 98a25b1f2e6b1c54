//! A join credential.

use std::fmt;

/// Bytes that no log shows, zeroed when dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The bytes, for whoever has to pass them on.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// How many bytes.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// No bytes.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} secret bytes>", self.0.len())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Or the compiler sees that nobody reads it and leaves it as it is.
        std::hint::black_box(&self.0);
    }
}
