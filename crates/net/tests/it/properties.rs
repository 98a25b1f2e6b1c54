//! Parsers of what people and certificates write: they refuse, never panic,
//! and read back what they write.

use std::time::Duration;

use bigfleet_net::{duration, identity::Identity, listen::ListenAddr, telemetry::LogLevel};
use proptest::prelude::*;

proptest! {
    /// Equality of identities is equality of their bytes only if this holds.
    #[test]
    fn an_identity_keeps_its_bytes(uri in "(bigfleet://)?(cluster|shard|admin|readonly|[a-z]{0,3})?/?.{0,12}") {
        prop_assert_eq!(uri.parse::<Identity>().unwrap().to_string(), uri);
    }

    #[test]
    fn distinct_uris_are_distinct_identities(
        one in "bigfleet://(shard|cluster)/?[ab/]{0,3}",
        other in "bigfleet://(shard|cluster)/?[ab/]{0,3}",
    ) {
        let equal = one.parse::<Identity>() == other.parse::<Identity>();
        prop_assert_eq!(equal, one == other);
    }

    #[test]
    fn a_duration_is_read_back(nanos: u64) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(duration::parse(&duration::format(duration)), Ok(duration));
    }

    #[test]
    fn an_address_is_read_back(text in "\\[?[a-z0-9:.]{0,6}\\]?:[0-9]{0,6}") {
        if let Ok(addr) = text.parse::<ListenAddr>() {
            prop_assert_eq!(addr.to_string().parse(), Ok(addr));
        }
    }

    #[test]
    fn nothing_panics(text: String, short in ".{0,4}") {
        for text in [text, short] {
            let _ = duration::parse(&text);
            let _ = text.parse::<ListenAddr>();
            let _ = text.parse::<LogLevel>();
        }
    }
}
