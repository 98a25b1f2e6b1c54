//! Which fleet a coordinator serves: `<uuid>.<8 hex generation>`. A restore makes a
//! new generation of the same fleet (coordinator chapter §4).

use std::{fmt, str::FromStr};

/// A fleet and its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetId {
    text: String,
    uuid_len: usize,
    generation: u32,
}

/// Not a fleet id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a fleet id")]
pub struct MalformedFleetId(pub String);

impl FleetId {
    /// This generation of a fleet.
    #[must_use]
    pub fn new(uuid: &str, generation: u32) -> Self {
        Self { text: format!("{uuid}.{generation:08x}"), uuid_len: uuid.len(), generation }
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What all generations of one fleet share.
    #[must_use]
    pub fn uuid(&self) -> &str {
        &self.text[..self.uuid_len]
    }

    /// Orders the histories of one fleet.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }
}

impl fmt::Display for FleetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FleetId {
    type Err = MalformedFleetId;

    fn from_str(text: &str) -> Result<Self, MalformedFleetId> {
        let malformed = || MalformedFleetId(text.to_owned());
        let (uuid, generation) = text.rsplit_once('.').ok_or_else(malformed)?;
        let hex = generation.len() == 8 && generation.bytes().all(|byte| byte.is_ascii_hexdigit());
        if uuid.is_empty() || !hex {
            return Err(malformed());
        }
        let generation = u32::from_str_radix(generation, 16).map_err(|_| malformed())?;
        Ok(Self { text: text.to_owned(), uuid_len: uuid.len(), generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_uuid_and_eight_hex_digits() {
        let fleet = |text: &str| text.parse::<FleetId>().unwrap();
        assert_eq!(fleet("u-1.0000000a").generation(), 10);
        assert_eq!(fleet("u.v.ffffffff").uuid(), "u.v");
        assert_eq!(FleetId::new("u.v", u32::MAX), fleet("u.v.ffffffff"));
        for text in ["", "u", "u.", ".00000000", "u.0000000", "u.+0000000", "u.000000000"] {
            assert!(text.parse::<FleetId>().is_err(), "{text}");
        }
    }
}
