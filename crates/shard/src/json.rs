//! JSON forms of types that have none of their own.

/// An instant: RFC 3339 in UTC, with nanoseconds.
pub(crate) mod instant {
    use std::borrow::Cow;

    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(
        instant: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{instant:.9}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        Cow::<'_, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A name of the model's.
pub(crate) mod text {
    use std::ops::Deref;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        name: &impl Deref<Target = str>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name)
    }

    pub(crate) fn deserialize<'de, T: From<String>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer).map(T::from)
    }
}
