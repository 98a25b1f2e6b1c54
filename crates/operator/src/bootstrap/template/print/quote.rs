//! Strings and characters in quotes, with what does not show escaped.

use super::super::text::{chars, is_printable};

/// `"…"`; with `ascii` everything else is escaped too.
pub(super) fn string(text: &[u8], ascii: bool) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    quoted.push(b'"');
    for (char, bytes) in chars(text) {
        match char {
            Some(char) => escape(&mut quoted, char, '"', ascii),
            None => bytes.iter().for_each(|byte| hex(&mut quoted, 'x', 2, u32::from(*byte))),
        }
    }
    quoted.push(b'"');
    quoted
}

/// `'…'`.
pub(super) fn character(char: char, ascii: bool) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    escape(&mut quoted, char, '\'', ascii);
    quoted.push(b'\'');
    quoted
}

/// Whether text can stand between backquotes unchanged.
pub(super) fn fits_backquotes(text: &[u8]) -> bool {
    chars(text).all(|(char, _)| {
        char.is_some_and(|char| {
            char == '\t' || !matches!(char, '\0'..' ' | '`' | '\x7f' | '\u{feff}')
        })
    })
}

fn escape(out: &mut Vec<u8>, char: char, quote: char, ascii: bool) {
    if char == quote || char == '\\' {
        out.push(b'\\');
    }
    if is_printable(char) && (char.is_ascii() || !ascii) {
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        return;
    }
    let letter = match char {
        '\x07' => b'a',
        '\x08' => b'b',
        '\x0c' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\x0b' => b'v',
        '\0'..' ' | '\x7f' => return hex(out, 'x', 2, char.into()),
        '\0'..='\u{ffff}' => return hex(out, 'u', 4, char.into()),
        _ => return hex(out, 'U', 8, char.into()),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

fn hex(out: &mut Vec<u8>, letter: char, digits: usize, code: u32) {
    out.extend_from_slice(format!("\\{letter}{code:0digits$x}").as_bytes());
}
