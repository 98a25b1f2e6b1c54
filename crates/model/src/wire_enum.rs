//! Enums that share their numbers with the wire.

/// Declares an enum whose discriminants are the wire's numbers, with a checked
/// conversion from the **raw** number. The accessors that prost generates fall
/// back to the zero variant on an unknown number, which would alias silently.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        $name:ident as $wire:ty {
            $($(#[$variant_meta:meta])* $variant:ident = $number:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_meta])* $variant = $number,)+
        }

        impl $name {
            /// All values, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value with this wire number, if there is one.
            pub const fn from_wire(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The wire number.
            pub const fn to_wire(self) -> i32 {
                self as i32
            }
        }

        // Ties every number to the generated enum at compile time.
        const _: () = {
            $(assert!(<$wire>::$variant as i32 == $number);)+
        };
    };
}
