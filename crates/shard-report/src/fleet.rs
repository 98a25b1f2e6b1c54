//! Which fleet an answer is from: `<uuid>.<8 hex generation>`. A restore makes a
//! new generation of the same fleet, and no shard goes back to an older one.

use std::str::FromStr;

/// A fleet and its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FleetId {
    text: String,
    uuid_len: usize,
    generation: u32,
}

/// Why an answer is not for us.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    #[error("{0:?} is not a fleet id")]
    Malformed(String),
    #[error(
        "it is of fleet {theirs}, this shard belongs to {ours}; point it at its own coordinator, \
         or restart it to change fleets"
    )]
    Other { ours: String, theirs: String },
    #[error("it is of {theirs}, a generation before {ours}: a coordinator from before a restore")]
    Older { ours: String, theirs: String },
}

impl FromStr for FleetId {
    type Err = Foreign;

    fn from_str(text: &str) -> Result<Self, Foreign> {
        let malformed = || Foreign::Malformed(text.to_owned());
        let (uuid, generation) = text.rsplit_once('.').ok_or_else(malformed)?;
        let hex = generation.len() == 8 && generation.bytes().all(|byte| byte.is_ascii_hexdigit());
        if uuid.is_empty() || !hex {
            return Err(malformed());
        }
        let generation = u32::from_str_radix(generation, 16).map_err(|_| malformed())?;
        Ok(Self { text: text.to_owned(), uuid_len: uuid.len(), generation })
    }
}

impl FleetId {
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    fn uuid(&self) -> &str {
        &self.text[..self.uuid_len]
    }

    /// Whether a shard of fleet `ours` may follow `theirs`.
    pub(crate) fn follows(ours: Option<&Self>, theirs: &Self) -> Result<(), Foreign> {
        let Some(ours) = ours else { return Ok(()) };
        let texts = || (ours.text.clone(), theirs.text.clone());
        if ours.uuid() != theirs.uuid() {
            let (ours, theirs) = texts();
            return Err(Foreign::Other { ours, theirs });
        }
        if theirs.generation < ours.generation {
            let (ours, theirs) = texts();
            return Err(Foreign::Older { ours, theirs });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(text: &str) -> FleetId {
        text.parse().unwrap()
    }

    #[test]
    fn reads_a_uuid_and_eight_hex_digits() {
        assert_eq!(fleet("u-1.0000000a").generation, 10);
        assert_eq!(fleet("u.v.ffffffff").uuid(), "u.v");
        for text in ["", "u", "u.", ".00000000", "u.0000000", "u.+0000000", "u.000000000"] {
            assert!(text.parse::<FleetId>().is_err(), "{text}");
        }
    }

    #[test]
    fn never_to_another_fleet_nor_back() {
        let ours = fleet("u.00000005");
        for (theirs, follows) in [
            ("u.00000005", true),
            ("u.00000006", true),
            ("u.00000004", false),
            ("v.00000006", false),
        ] {
            assert_eq!(FleetId::follows(Some(&ours), &fleet(theirs)).is_ok(), follows, "{theirs}");
        }
        assert!(FleetId::follows(None, &ours).is_ok());
    }
}
