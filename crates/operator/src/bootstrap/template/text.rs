//! Strings of the language: bytes that are usually UTF-8.
//!
//! `slice` cuts them anywhere and `"\xff"` writes any byte, so they cannot be
//! Rust strings.

use std::{fmt, ops::Deref, sync::Arc};

/// A piece of a shared byte string. Cloning and cutting copy nothing.
#[derive(Clone)]
pub struct Text {
    bytes: Arc<[u8]>,
    start: usize,
    end: usize,
}

impl Text {
    /// Bytes `start..end` of this text; `None` if they are not in it.
    pub(super) fn cut(&self, start: usize, end: usize) -> Option<Self> {
        (start <= end && end <= self.len()).then(|| Self {
            bytes: Arc::clone(&self.bytes),
            start: self.start + start,
            end: self.start + end,
        })
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self { start: 0, end: bytes.len(), bytes: bytes.into() }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }
}

impl fmt::Debug for Text {
    /// Not the bytes: they may be a join token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// The first character and the number of its bytes. A byte that starts no
/// character is one of its own, without a value.
pub(super) fn first_char(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    let lead = *bytes.first()?;
    let width = match lead {
        0..0x80 => return Some((Some(char::from(lead)), 1)),
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    let char = bytes
        .get(..width)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|text| text.chars().next());
    Some((char, if char.is_some() { width } else { 1 }))
}

/// The characters of a byte string with their bytes.
pub(super) fn chars(bytes: &[u8]) -> impl Iterator<Item = (Option<char>, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (char, width) = first_char(rest)?;
        let (bytes, after) = rest.split_at(width);
        rest = after;
        Some((char, bytes))
    })
}

/// Whether a character shows: letters, marks, numbers, signs and the space;
/// no other blanks, no controls, nothing unassigned.
pub(super) fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return matches!(char, ' '..='~');
    }
    // The standard library escapes exactly the others, past the first place.
    let mut buffer = [b'a'; 5];
    let width = char.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..=width]).is_ok_and(|text| text.escape_debug().count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows() {
        for char in ['é', '日', '\u{301}', '€', '\u{fffd}', ' ', '~'] {
            assert!(is_printable(char), "{char:?}");
        }
        for char in ['\n', '\u{7f}', '\u{a0}', '\u{200b}', '\u{2028}', '\u{e000}', '\u{feff}'] {
            assert!(!is_printable(char), "{char:?}");
        }
    }

    #[test]
    fn broken_characters_are_single_bytes() {
        let pieces: Vec<_> = chars(b"a\xe2\x82z\xf0\x9f\x98\x80\xff")
            .map(|(char, bytes)| (char, bytes.len()))
            .collect();
        assert_eq!(
            pieces,
            [(Some('a'), 1), (None, 1), (None, 1), (Some('z'), 1), (Some('😀'), 4), (None, 1)]
        );
    }

    #[test]
    fn a_cut_stays_inside() {
        let text = Text::from("abcdef").cut(1, 4).unwrap();
        assert_eq!(&*text, b"bcd");
        assert_eq!(&*text.cut(1, 2).unwrap(), b"c");
        assert!(text.cut(0, 4).is_none());
        assert!(text.cut(3, 2).is_none());
    }
}
