//! Whole numbers.

use super::{super::text::is_printable, Flags, Full, Sink, quote, verb::Printed};

/// A whole number as `printf` sees it: 64 bits and whether the first is a sign.
#[derive(Clone, Copy)]
pub(super) struct Integer {
    pub(super) negative: bool,
    pub(super) magnitude: u64,
    /// A byte has no sign; it matters for `%#v` alone.
    pub(super) is_byte: bool,
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Self { negative: value < 0, magnitude: value.unsigned_abs(), is_byte: false }
    }
}

impl From<u8> for Integer {
    fn from(value: u8) -> Self {
        Self { negative: false, magnitude: value.into(), is_byte: true }
    }
}

impl Integer {
    pub(super) fn print(self, out: &mut Sink, flags: Flags, verb: char) -> Printed {
        Some(match verb {
            'v' if flags.sharp_v && self.is_byte => {
                self.digits(out, Flags { sharp: true, ..flags }, 'x')
            }
            'v' => self.digits(out, flags, 'd'),
            'd' | 'b' | 'o' | 'O' | 'x' | 'X' => self.digits(out, flags, verb),
            'c' => {
                let mut buffer = [0; 4];
                flags.pad(out, self.character().encode_utf8(&mut buffer).as_bytes())
            }
            'q' => flags.pad(out, &quote::character(self.character(), flags.plus)),
            'U' => self.code_point(out, flags),
            _ => return None,
        })
    }

    fn digits(self, out: &mut Sink, flags: Flags, verb: char) -> Result<(), Full> {
        let magnitude = self.magnitude;
        let mut digits = match verb {
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            _ => magnitude.to_string(),
        };
        let signed = self.negative || flags.plus || flags.space;
        let least = match (flags.precision, flags.width) {
            (Some(0), width) if magnitude == 0 => {
                return flags.without_zero().fill(out, width.unwrap_or(0));
            }
            (Some(precision), _) => precision,
            // Zeros fill the width, less the sign.
            (None, Some(width)) if flags.zero && !flags.minus => {
                width.saturating_sub(usize::from(signed))
            }
            _ => 0,
        };
        if digits.len() < least {
            digits.insert_str(0, &"0".repeat(least - digits.len()));
        }
        let mut text = String::with_capacity(digits.len() + 5);
        if self.negative {
            text.push('-');
        } else if flags.plus {
            text.push('+');
        } else if flags.space {
            text.push(' ');
        }
        if verb == 'O' {
            text.push_str("0o");
        }
        if flags.sharp {
            text.push_str(match verb {
                'b' => "0b",
                'o' | 'O' if !digits.starts_with('0') => "0",
                'x' => "0x",
                'X' => "0X",
                _ => "",
            });
        }
        text.push_str(&digits);
        flags.without_zero().pad(out, text.as_bytes())
    }

    /// Two's complement, where a verb does not know signs.
    fn bits(self) -> u64 {
        if self.negative { self.magnitude.wrapping_neg() } else { self.magnitude }
    }

    fn character(self) -> char {
        let code = u32::try_from(self.bits()).ok();
        code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// `U+0078`, or with a sharp `U+0078 'x'`.
    fn code_point(self, out: &mut Sink, flags: Flags) -> Result<(), Full> {
        let digits = flags.precision.unwrap_or(0).max(4);
        let hex = format!("{:X}", self.bits());
        let zeros = "0".repeat(digits.saturating_sub(hex.len()));
        let mut text = format!("U+{zeros}{hex}");
        let char = u32::try_from(self.bits()).ok().and_then(char::from_u32);
        if let Some(char) = char.filter(|&char| flags.sharp && is_printable(char)) {
            text.extend([' ', '\'', char, '\'']);
        }
        flags.without_zero().pad(out, text.as_bytes())
    }
}
