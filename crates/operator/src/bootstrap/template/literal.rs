//! The values of numbers, characters and strings as they are written.

use super::text::first_char;

/// What a number in a template is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// Whole, and written so.
    Int(i64),
    /// Written with a point or an exponent.
    Float(f64),
    /// Whole, but past what a value can hold: an error where it is reached.
    TooBig,
}

/// Reads a number; `None` if it is malformed.
pub(super) fn number(text: &[u8]) -> Option<Number> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let is_hex = text.len() > 2
        && (text.starts_with("0x") || text.starts_with("0X"))
        && !text.contains(['p', 'P']);
    let looks_like_float = text.contains(['.', 'e', 'E', 'p', 'P']) && !is_hex;
    if let Some(magnitude) = whole(digits) {
        let value = if negative { -magnitude } else { magnitude };
        if let Ok(int) = i64::try_from(value) {
            // A sign hides the prefix: -0x1e is read as a float. So it has always been.
            #[expect(clippy::cast_precision_loss, reason = "nearest double is what is asked for")]
            return Some(if looks_like_float {
                Number::Float(int as f64)
            } else {
                Number::Int(int)
            });
        }
        // Signed, it is no unsigned number either.
        if digits.len() == text.len() && u64::try_from(value).is_ok() {
            return Some(Number::TooBig);
        }
    }
    if !text.contains(['.', 'e', 'E', 'p', 'P']) {
        return None;
    }
    let magnitude = float(digits)?;
    magnitude.is_finite().then_some(Number::Float(if negative { -magnitude } else { magnitude }))
}

/// An unsigned whole number of any base.
fn whole(text: &str) -> Option<i128> {
    if !underscores_separate_digits(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', _, ..] => (16, &lower[2..]),
        [b'0', b'o', _, ..] => (8, &lower[2..]),
        [b'0', b'b', _, ..] => (2, &lower[2..]),
        [b'0'] => return Some(0),
        [b'0', ..] => (8, &lower[1..]),
        [] => return None,
        _ => (10, lower.as_str()),
    };
    let mut value: i128 = 0;
    for digit in digits.chars().filter(|&char| char != '_') {
        value = value.checked_mul(base.into())?.checked_add(digit.to_digit(base)?.into())?;
    }
    Some(value)
}

fn float(text: &str) -> Option<f64> {
    if !underscores_separate_digits(text) {
        return None;
    }
    let lower = text.replace('_', "").to_ascii_lowercase();
    match lower.strip_prefix("0x") {
        Some(hex) => hex_float(hex),
        // Rust reads names of numbers too, which the lexer never lets through.
        None => lower.parse().ok(),
    }
}

/// `1.8p1`: hexadecimal digits, and always a binary exponent.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let mut bits: u64 = 0;
    let mut scale: i64 = 0;
    for (digits, step) in [(before, 0), (after, -4)] {
        for digit in digits.chars() {
            let digit = u64::from(digit.to_digit(16)?);
            if bits >> 59 == 0 {
                bits = bits << 4 | digit;
                scale += step;
            } else {
                // Too far right to be seen, except by the rounding.
                bits |= u64::from(digit != 0);
                scale += 4 + step;
            }
        }
    }
    let exponent: i64 = exponent.parse::<i32>().ok()?.into();
    let mut power = exponent.checked_add(scale)?.clamp(-4_000, 4_000);
    // Round once, where the smallest numbers have fewer digits.
    if bits != 0 && i64::from(bits.ilog2()) + power < -1_022 && power < -1_074 {
        bits = match u32::try_from(-1_074 - power) {
            Ok(shift @ 1..64) => round_shift(bits, shift),
            _ => 0,
        };
        power = -1_074;
    }
    #[expect(clippy::cast_precision_loss, reason = "rounds to the nearest double")]
    let mut value = bits as f64;
    while power != 0 && value != 0.0 && value.is_finite() {
        let step = power.clamp(-1_000, 1_000);
        value *= 2f64.powi(i32::try_from(step).ok()?);
        power -= step;
    }
    Some(value)
}

/// Half goes to the even neighbour.
fn round_shift(bits: u64, shift: u32) -> u64 {
    let (kept, rest, half) = (bits >> shift, bits & ((1 << shift) - 1), 1 << (shift - 1));
    kept + u64::from(rest > half || rest == half && kept & 1 == 1)
}

/// An underscore stands between two digits, or between a prefix and a digit.
fn underscores_separate_digits(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let prefixed = ["0x", "0o", "0b"].iter().any(|prefix| lower.starts_with(prefix));
    let hex = lower.starts_with("0x");
    let mut before = if prefixed { '0' } else { '^' };
    for char in lower.chars().skip(if prefixed { 2 } else { 0 }) {
        let is_digit = char.is_ascii_digit() || hex && char.is_ascii_hexdigit();
        let class = if is_digit { '0' } else { char };
        if class == '_' && before != '0' || before == '_' && class != '0' {
            return false;
        }
        before = class;
    }
    before != '_'
}

/// The number of a quoted character, quotes included; `None` if it is malformed.
pub(super) fn character(text: &[u8]) -> Option<i64> {
    let inner = text.strip_prefix(b"'")?;
    let (unit, rest) = unit(inner, b'\'')?;
    (rest == b"'").then_some(match unit {
        Unit::Char(char) => i64::from(u32::from(char)),
        Unit::Byte(byte) => i64::from(byte),
    })
}

/// The bytes of a quoted or backquoted string, quotes included.
pub(super) fn string(text: &[u8]) -> Option<Vec<u8>> {
    let quote = *text.first()?;
    let mut inner = text.get(1..text.len().checked_sub(1)?)?;
    if quote == b'`' {
        // So that a file with DOS line ends says the same.
        return Some(inner.iter().copied().filter(|&byte| byte != b'\r').collect());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    while !inner.is_empty() {
        let (unit, rest) = unit(inner, quote)?;
        match unit {
            Unit::Char(char) => {
                bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Unit::Byte(byte) => bytes.push(byte),
        }
        inner = rest;
    }
    Some(bytes)
}

enum Unit {
    Char(char),
    Byte(u8),
}

/// One character or escape from the front.
fn unit(text: &[u8], quote: u8) -> Option<(Unit, &[u8])> {
    let (char, width) = first_char(text)?;
    if char != Some('\\') {
        let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
        let closes = char == char::from(quote) || char == '\n';
        return (!closes).then(|| (Unit::Char(char), &text[width..]));
    }
    let (&escape, rest) = text.get(1..)?.split_first()?;
    let simple = |char| Some((Unit::Char(char), rest));
    match escape {
        b'a' => simple('\x07'),
        b'b' => simple('\x08'),
        b'f' => simple('\x0c'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'v' => simple('\x0b'),
        b'\\' => simple('\\'),
        b'\'' | b'"' if escape == quote => simple(char::from(quote)),
        b'x' => code(rest, 2, 16)
            .and_then(|(code, rest)| Some((Unit::Byte(u8::try_from(code).ok()?), rest))),
        b'u' | b'U' => {
            let (code, rest) = code(rest, if escape == b'u' { 4 } else { 8 }, 16)?;
            Some((Unit::Char(char::from_u32(code)?), rest))
        }
        b'0'..=b'7' => {
            let (code, rest) = code(&text[1..], 3, 8)?;
            Some((Unit::Byte(u8::try_from(code).ok()?), rest))
        }
        _ => None,
    }
}

fn code(text: &[u8], digits: usize, base: u32) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let mut value: u32 = 0;
    for &digit in digits {
        value = value.checked_mul(base)?.checked_add(char::from(digit).to_digit(base)?)?;
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, expected) in [
            ("0", 0),
            ("-0", 0),
            ("017", 15),
            ("0o17", 15),
            ("0X1f", 31),
            ("0b_101", 5),
            ("1_000", 1000),
            ("+7", 7),
            ("0x1e3", 483),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(number(text.as_bytes()), Some(Number::Int(expected)), "{text}");
        }
        for (text, expected) in [
            ("1.5", 1.5),
            (".5", 0.5),
            ("1.", 1.0),
            ("1_0.5", 10.5),
            ("1e3", 1000.0),
            ("0x1.8p1", 3.0),
            ("0x1p-2", 0.25),
            ("-0x1e3", -483.0),
            ("089.5", 89.5),
            ("0x10000000000000000001p0", 75_557_863_725_914_323_419_136.0),
        ] {
            assert_eq!(number(text.as_bytes()), Some(Number::Float(expected)), "{text}");
        }
        assert_eq!(number(b"9223372036854775808"), Some(Number::TooBig));
        for text in [
            "",
            "-",
            ".",
            "089",
            "0x",
            "1__0",
            "_1",
            "1_",
            "0b12",
            "1e",
            "1e999",
            "0x1.8",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn characters_and_strings() {
        for (text, expected) in [
            ("'a'", 97),
            (r"'\n'", 10),
            ("'é'", 233),
            (r"'\''", 39),
            (r"'\xff'", 255),
            (r"'\101'", 65),
        ] {
            assert_eq!(character(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["''", "'ab'", r#"'\"'"#, r"'\u12'", r"'\ud800'", r"'\q'"] {
            assert_eq!(character(text.as_bytes()), None, "{text}");
        }
        assert_eq!(string(br#""a\tb\"\u00e9\xff\101""#).unwrap(), b"a\tb\"\xc3\xa9\xffA");
        assert_eq!(string(b"`a\r\n\\n`").unwrap(), b"a\n\\n");
        assert_eq!(string(b"\"\xff\"").unwrap(), "\u{fffd}".as_bytes());
        for text in [r#""\'""#, r#""\400""#, r#""\U00110000""#, r#""\"#] {
            assert_eq!(string(text.as_bytes()), None, "{text}");
        }
    }
}
