//! Which fleet an answer is from: `<uuid>.<8 hex generation>`, and which leader of it. A
//! restore makes a new generation of the same fleet, an election a higher term, and no
//! shard goes back to an older one.

use bigfleet_model::{FleetId, fleet::MalformedFleetId};

/// Why an answer is not for us.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// No fleet is called so.
    #[error(transparent)]
    Malformed(#[from] MalformedFleetId),
    /// Another fleet.
    #[error(
        "it is of fleet {theirs}, this shard belongs to {ours}; point it at its own coordinator, \
         or restart it to change fleets (with --shared-provider, with an empty --data-dir)"
    )]
    Other {
        /// Ours.
        ours: String,
        /// The answer's.
        theirs: String,
    },
    /// What our fleet was before a restore.
    #[error("it is of {theirs}, a generation before {ours}: a coordinator from before a restore")]
    Older {
        /// Ours.
        ours: String,
        /// The answer's.
        theirs: String,
    },
}

/// Why an answer of our fleet does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its term {theirs} is below {mark}, which was seen already: an old leader")]
pub struct OldLeader {
    /// The answer's.
    pub theirs: i64,
    /// The highest seen.
    pub mark: i64,
}

/// The mark after an answer of term `theirs`; it never falls.
pub const fn raise(mark: i64, theirs: i64) -> Result<i64, OldLeader> {
    if theirs < mark { Err(OldLeader { theirs, mark }) } else { Ok(theirs) }
}

/// Whether a shard of fleet `ours` may follow `theirs`.
pub fn follows(ours: Option<&FleetId>, theirs: &FleetId) -> Result<(), Foreign> {
    let Some(ours) = ours else { return Ok(()) };
    let texts = || (ours.to_string(), theirs.to_string());
    if ours.uuid() != theirs.uuid() {
        let (ours, theirs) = texts();
        return Err(Foreign::Other { ours, theirs });
    }
    if theirs.generation() < ours.generation() {
        let (ours, theirs) = texts();
        return Err(Foreign::Older { ours, theirs });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(text: &str) -> FleetId {
        text.parse().unwrap()
    }

    #[test]
    fn never_to_another_fleet_nor_back() {
        let ours = fleet("u.00000005");
        for (theirs, may) in [
            ("u.00000005", true),
            ("u.00000006", true),
            ("u.00000004", false),
            ("v.00000006", false),
        ] {
            assert_eq!(follows(Some(&ours), &fleet(theirs)).is_ok(), may, "{theirs}");
        }
        assert!(follows(None, &ours).is_ok());
    }
}
