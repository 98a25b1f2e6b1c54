//! Frames: what one write puts into a segment.
//!
//! ```text
//! magic u32 | length u32 | crc32c u32 (of all that follows) | number u64 | payload
//! ```
//!
//! One frame is one batch and one fsync, and frame n + 1 is written only after
//! frame n was synced. So a bad frame with a good one behind it was
//! acknowledged once and is damage, while a bad frame with nothing good behind
//! it may be a write that a crash cut short.

const MAGIC: [u8; 4] = *b"BFw1";
const HEADER: usize = 4 + 4 + 4 + 8;

/// Larger than any batch, smaller than a damaged length usually is.
const MAX_PAYLOAD: usize = 512 << 20;

/// One frame, whole.
pub(super) fn encode(number: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER + payload.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&number.to_le_bytes());
    frame.extend_from_slice(payload);
    let sum = crc32c::crc32c(&frame[12..]).to_le_bytes();
    frame[8..12].copy_from_slice(&sum);
    frame
}

/// A good frame at the start of `bytes`.
struct Frame<'a> {
    number: u64,
    payload: &'a [u8],
    len: usize,
}

fn decode(bytes: &[u8]) -> Option<Frame<'_>> {
    let header = bytes.get(..HEADER)?;
    if header[..4] != MAGIC {
        return None;
    }
    let word = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let len = usize::try_from(word(4)?).ok().filter(|len| *len <= MAX_PAYLOAD)?;
    let end = HEADER.checked_add(len)?;
    let covered = bytes.get(12..end)?;
    if crc32c::crc32c(covered) != word(8)? {
        return None;
    }
    let number = u64::from_le_bytes(header.get(12..20)?.try_into().ok()?);
    Some(Frame { number, payload: &bytes[HEADER..end], len: end })
}

/// What the bytes of one segment hold.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    /// Payloads of the good frames from the start on, with their end offsets.
    pub(super) frames: Vec<(&'a [u8], u64)>,
    /// Why reading ended before the end of the bytes.
    pub(super) end: ScanEnd,
}

/// How a scan ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScanEnd {
    /// With the last byte.
    Clean,
    /// At a bad frame that nothing good follows.
    Torn,
    /// At a bad or misnumbered frame that was synced once.
    Damaged(String),
}

/// Reads frames that must be numbered from `first` on.
pub(super) fn scan(bytes: &[u8], first: u64) -> Scan<'_> {
    let (mut frames, mut at, mut number) = (Vec::new(), 0, first);
    while at < bytes.len() {
        match decode(&bytes[at..]) {
            Some(frame) if frame.number == number => {
                at += frame.len;
                number += 1;
                frames.push((frame.payload, at as u64));
            }
            Some(frame) => {
                let problem = format!("frame {} at byte {at}, expected {number}", frame.number);
                return Scan { frames, end: ScanEnd::Damaged(problem) };
            }
            None => {
                let later = (at + 1..bytes.len()).find(|later| {
                    bytes[*later..].starts_with(&MAGIC)
                        && decode(&bytes[*later..]).is_some_and(|frame| frame.number > number)
                });
                let end = later.map_or(ScanEnd::Torn, |later| {
                    ScanEnd::Damaged(format!(
                        "the record at byte {at} fails its checksum, and a good one follows at byte {later}"
                    ))
                });
                return Scan { frames, end };
            }
        }
    }
    Scan { frames, end: ScanEnd::Clean }
}
