//! Text made safe for other languages.

use super::{
    print::{Full, Sink},
    text::{chars, is_printable},
};

/// For HTML.
pub(super) fn html(out: &mut Sink, text: &[u8]) -> Result<(), Full> {
    for byte in text {
        match byte {
            0 => out.write("\u{fffd}".as_bytes())?,
            b'"' => out.write(b"&#34;")?,
            b'\'' => out.write(b"&#39;")?,
            b'&' => out.write(b"&amp;")?,
            b'<' => out.write(b"&lt;")?,
            b'>' => out.write(b"&gt;")?,
            byte => out.write(&[*byte])?,
        }
    }
    Ok(())
}

/// For a string in JavaScript.
pub(super) fn js(out: &mut Sink, text: &[u8]) -> Result<(), Full> {
    for (char, bytes) in chars(text) {
        match char {
            Some(char @ ('\\' | '\'' | '"')) => {
                out.write(b"\\")?;
                out.write_char(char)?;
            }
            Some(char) if matches!(char, '<' | '>' | '&' | '=' | '\0'..' ') => {
                out.write(format!("\\u{:04X}", u32::from(char)).as_bytes())?;
            }
            Some(char) if char.is_ascii() || is_printable(char) => out.write(bytes)?,
            Some(char) => out.write(format!("\\u{:04X}", u32::from(char)).as_bytes())?,
            None => out.write(bytes)?,
        }
    }
    Ok(())
}

/// For the query of a URL.
pub(super) fn urlquery(out: &mut Sink, text: &[u8]) -> Result<(), Full> {
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.write(&[*byte])?;
            }
            b' ' => out.write(b"+")?,
            byte => out.write(format!("%{byte:02X}").as_bytes())?,
        }
    }
    Ok(())
}
