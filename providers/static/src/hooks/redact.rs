//! A hook may say what it was given: the bootstrap blob, or a line of it.

use std::collections::HashSet;

/// So many bytes in a row of the blob count as a part of it.
const WINDOW: usize = 8;
const MASK: &[u8] = b"[redacted]";

/// `text` without any part of `blob`, as it is; an encoding of it is not recognised.
pub(super) fn redact(text: &[u8], blob: &[u8]) -> Vec<u8> {
    let width = WINDOW.min(blob.len());
    if width == 0 || text.len() < width {
        return text.to_owned();
    }
    let said: HashSet<&[u8]> = text.windows(width).collect();
    // A blob is large and a text small: most windows end at one look.
    let mut firsts = [false; 256];
    text.iter().for_each(|byte| firsts[usize::from(*byte)] = true);
    let secret: HashSet<&[u8]> = blob
        .windows(width)
        .filter(|window| firsts[usize::from(window[0])] && said.contains(window))
        .collect();
    let mut masked = vec![false; text.len()];
    for (at, window) in text.windows(width).enumerate() {
        if secret.contains(window) {
            masked[at..at + width].fill(true);
        }
    }
    let mut redacted = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        match masked[at] {
            false => redacted.push(*byte),
            true if at == 0 || !masked[at - 1] => redacted.extend_from_slice(MASK),
            true => {}
        }
    }
    redacted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_the_blob_is_left() {
        let blob = b"#!/bin/sh\nkubeadm join --token abcdef.0123456789abcdef\n";
        let cases = [
            ("+ kubeadm join --token abcdef.0123456789abcdef: refused", "+ [redacted]: refused"),
            ("bad token 456789abcdef!", "bad token [redacted]!"),
            ("no route to host", "no route to host"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(String::from_utf8_lossy(&redact(text.as_bytes(), blob)), expected);
        }
        assert_eq!(redact(b"the pin is 1234", b"1234"), b"the pin is [redacted]");
        assert_eq!(redact(b"said", b""), b"said");
    }
}
