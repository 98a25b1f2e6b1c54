//! Ids and hosts of machines, which no decision reads: close together, out of
//! the way, and without an allocation each.

use smallvec::SmallVec;

/// Where a machine's texts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextAt(u32);

/// A host: its provider, by number, and what that calls it.
pub(crate) type Host<'t> = (u32, &'t str);

/// Chunks that are only ever appended to. What is forgotten stays until
/// [`Self::is_wasteful`] says that a copy is due.
#[derive(Clone, Default)]
pub(crate) struct Texts {
    chunks: Vec<Vec<u8>>,
    live: usize,
    wasted: usize,
}

/// Bits of a place inside its chunk.
const OFFSET_BITS: u32 = 20;
const CHUNK: usize = 1 << OFFSET_BITS;
/// In place of the number of a provider, which count from one here.
const NO_HOST: u64 = 0;

impl Texts {
    pub(crate) fn put(&mut self, id: &str, host: Option<Host<'_>>) -> TextAt {
        let (provider, reference) = host
            .map_or((NO_HOST, ""), |(provider, reference)| (u64::from(provider) + 1, reference));
        // Many providers know a machine by its id; an empty text says so.
        let reference = if reference == id { "" } else { reference };
        let mut head = SmallVec::<[u8; 16]>::new();
        for number in [id.len() as u64, reference.len() as u64, provider] {
            write_number(&mut head, number);
        }
        let size = head.len() + id.len() + reference.len();
        if self.chunks.last().is_none_or(|last| last.len() + size > CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK.max(size)));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let at = TextAt((number as u32) << OFFSET_BITS | chunk.len() as u32);
        for part in [&head[..], id.as_bytes(), reference.as_bytes()] {
            chunk.extend_from_slice(part);
        }
        self.live += size;
        at
    }

    pub(crate) fn forget(&mut self, at: TextAt) {
        let size = self.parts(at).size;
        self.live -= size;
        self.wasted += size;
    }

    /// More is forgotten than known.
    pub(crate) const fn is_wasteful(&self) -> bool {
        self.wasted > self.live + CHUNK
    }

    pub(crate) fn id(&self, at: TextAt) -> &str {
        self.parts(at).id
    }

    /// Whether this is the id, without a look at anything else.
    pub(crate) fn is_id(&self, at: TextAt, id: &str) -> bool {
        let entry = self.entry(at);
        let mut from = 0;
        let len = read_number(entry, &mut from) as usize;
        read_number(entry, &mut from);
        read_number(entry, &mut from);
        len == id.len() && entry[from..from + len] == *id.as_bytes()
    }

    pub(crate) fn host(&self, at: TextAt) -> Option<Host<'_>> {
        let Parts { id, reference, provider, .. } = self.parts(at);
        let reference = if reference.is_empty() { id } else { reference };
        Some((provider.checked_sub(1)? as u32, reference))
    }

    fn entry(&self, at: TextAt) -> &[u8] {
        let chunk = &self.chunks[(at.0 >> OFFSET_BITS) as usize];
        &chunk[(at.0 as usize) & (CHUNK - 1)..]
    }

    fn parts(&self, at: TextAt) -> Parts<'_> {
        let entry = self.entry(at);
        let mut from = 0;
        let mut number = || read_number(entry, &mut from);
        let (id, reference, provider) = (number() as usize, number() as usize, number());
        // Written from texts, so they are texts.
        let text = |from: usize, len: usize| {
            std::str::from_utf8(&entry[from..from + len]).unwrap_or_default()
        };
        Parts {
            id: text(from, id),
            reference: text(from + id, reference),
            provider,
            size: from + id + reference,
        }
    }
}

/// One machine's texts.
struct Parts<'t> {
    id: &'t str,
    reference: &'t str,
    provider: u64,
    /// In all.
    size: usize,
}

/// Seven bits a byte, the lowest first; a set top bit says that more follow. Lengths
/// are short, so they mostly take a byte.
fn write_number(into: &mut SmallVec<[u8; 16]>, mut number: u64) {
    while number > 0x7f {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn read_number(entry: &[u8], at: &mut usize) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = entry[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were_put() {
        let mut texts = Texts::default();
        let long = "x".repeat(3 * CHUNK);
        let put = [
            ("m-1", None),
            ("m-2", Some((3, "i-0a1b"))),
            ("m-3", Some((0, "m-3"))),
            ("", Some((1, "ref"))),
            (long.as_str(), Some((7, "r"))),
            ("m-4", None),
        ];
        let at: Vec<TextAt> = put.iter().map(|(id, host)| texts.put(id, *host)).collect();
        for ((id, host), at) in put.iter().zip(&at) {
            assert_eq!((texts.id(*at), texts.host(*at)), (*id, *host));
            assert!(texts.is_id(*at, id));
            assert!(!texts.is_id(*at, "m-") && !texts.is_id(*at, "m-9"));
        }
        assert!(!texts.is_wasteful());
        at.iter().for_each(|at| texts.forget(*at));
        assert!(texts.is_wasteful());
    }
}
