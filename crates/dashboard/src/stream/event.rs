//! What is told to viewers.

use std::fmt;

use bytes::Bytes;

/// What a viewer may ask to be told of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// One frame per shard and cycle.
    Summary,
    /// The audit logs.
    Decisions,
    /// Who owns what.
    Topology,
    /// That the needs of this shard were judged again.
    Needs(String),
}

impl Topic {
    /// As a parameter writes it.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "summary" => Some(Self::Summary),
            "decisions" => Some(Self::Decisions),
            "topology" => Some(Self::Topology),
            other => {
                let shard = other.strip_prefix("needs:").filter(|shard| !shard.is_empty())?;
                Some(Self::Needs(shard.to_owned()))
            }
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Summary => f.write_str("summary"),
            Self::Decisions => f.write_str("decisions"),
            Self::Topology => f.write_str("topology"),
            Self::Needs(shard) => write!(f, "needs:{shard}"),
        }
    }
}

/// One thing that is told.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Rises by one from event to event.
    pub(crate) number: u64,
    /// Who wants it.
    pub(crate) topic: Topic,
    /// Whose it is, if it is of one shard.
    pub(crate) shard: Option<String>,
    /// Which cluster it names; empty for none.
    pub(crate) cluster: String,
    /// What it is.
    pub(crate) kind: Kind,
    /// A JSON object on one line.
    pub(crate) data: Bytes,
    /// What is told instead to those who do not see every cluster, if that is another.
    pub(crate) scoped: Option<Bytes>,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What its topic says.
    News,
    /// Its source fails, or is back.
    Source,
}

/// One frame of an event stream. JSON has no line breaks of its own.
#[must_use]
pub(crate) fn frame(event: &str, id: Option<&str>, data: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(event.len() + data.len() + 64);
    frame.extend_from_slice(b"event: ");
    frame.extend_from_slice(event.as_bytes());
    if let Some(id) = id {
        frame.extend_from_slice(b"\nid: ");
        frame.extend_from_slice(id.as_bytes());
    }
    frame.extend_from_slice(b"\ndata: ");
    frame.extend_from_slice(data);
    frame.extend_from_slice(b"\n\n");
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_written_as_they_are_read() {
        for text in ["summary", "decisions", "topology", "needs:shard-0"] {
            assert_eq!(Topic::parse(text).unwrap().to_string(), text);
        }
        assert_eq!((Topic::parse("needs:"), Topic::parse("x")), (None, None));
    }

    #[test]
    fn a_frame_ends_with_an_empty_line() {
        assert_eq!(frame("a", Some("1.2"), b"{}"), "event: a\nid: 1.2\ndata: {}\n\n");
        assert_eq!(frame("a", None, b"{}"), "event: a\ndata: {}\n\n");
    }
}
