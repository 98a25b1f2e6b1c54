//! Identities of objects.

use std::{fmt, hash::BuildHasher};

/// The `metadata.uid` of an object in 16 bytes: hundreds of thousands are kept. The
/// API server makes UUIDs; any other text is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid([u8; 16]);

impl Uid {
    /// Of the text in an object.
    #[must_use]
    pub fn of(text: &str) -> Self {
        uuid(text).unwrap_or_else(|| hashed(text))
    }
}

/// As the API server writes it.
impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

fn uuid(text: &str) -> Option<Uid> {
    let bytes = text.as_bytes();
    let dashes = [8, 13, 18, 23];
    if bytes.len() != 36 || dashes.iter().any(|at| bytes[*at] != b'-') {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        // Capitals would name the same UUID, but another uid.
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut digits = bytes
        .iter()
        .enumerate()
        .filter(|(at, _)| !dashes.contains(at))
        .map(|(_, byte)| digit(*byte));
    let mut uid = [0; 16];
    for byte in &mut uid {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(Uid(uid))
}

fn hashed(text: &str) -> Uid {
    let half = |seed: u64| foldhash::quality::FixedState::with_seed(seed).hash_one(text);
    let mut uid = [0; 16];
    uid[..8].copy_from_slice(&half(1).to_le_bytes());
    uid[8..].copy_from_slice(&half(2).to_le_bytes());
    Uid(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_texts_are_different() {
        let texts = [
            "6f1c2f9e-3c2e-4a8e-9b63-0b8f5f0f0a01",
            "6f1c2f9e-3c2e-4a8e-9b63-0b8f5f0f0a02",
            "6F1C2F9E-3C2E-4A8E-9B63-0B8F5F0F0A01",
            "6f1c2f9e03c2e-4a8e-9b63-0b8f5f0f0a01",
            "",
            "uid-1",
            "uid-2",
        ];
        for (at, one) in texts.iter().enumerate() {
            assert_eq!(Uid::of(one), Uid::of(one));
            for other in &texts[at + 1..] {
                assert_ne!(Uid::of(one), Uid::of(other), "{one} and {other}");
            }
        }
        assert_eq!(Uid::of(texts[0]).to_string(), texts[0]);
    }
}
