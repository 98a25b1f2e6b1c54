//! Identifiers. Cheap to clone, opaque, ordered byte-wise.

use std::sync::LazyLock;

/// An immutable text with a meaning of its own: a name, cheap to clone, ordered
/// byte-wise.
#[macro_export]
macro_rules! text_newtype {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(::std::sync::Arc<str>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl ::std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl ::std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

pub use text_newtype;

text_newtype! {
    /// Names a cluster; constant for the cluster's life.
    ClusterId
}

text_newtype! {
    /// Names a machine; given by its provider, stable for the machine's life.
    MachineId
}

text_newtype! {
    /// Names a gang: opaque, compared for equality only, empty for plain needs.
    Group
}

impl Group {
    /// The group of a plain need. Most needs have it, so they share one.
    pub fn none() -> Self {
        static NONE: LazyLock<Group> = LazyLock::new(|| Group::from(""));
        NONE.clone()
    }
}
