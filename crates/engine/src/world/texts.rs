//! Ids and hosts of machines, which no decision reads: close together, out of
//! the way, and without an allocation each.

/// Where a machine's texts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextAt(u32);

/// A host: its provider, by number, and what that calls it.
pub(crate) type Host<'t> = (u32, &'t str);

/// Chunks that are only ever appended to. What is forgotten stays until
/// [`Self::is_wasteful`] says that a copy is due.
#[derive(Default)]
pub(crate) struct Texts {
    chunks: Vec<Vec<u8>>,
    live: usize,
    wasted: usize,
}

/// Bits of a place inside its chunk.
const OFFSET_BITS: u32 = 20;
const CHUNK: usize = 1 << OFFSET_BITS;
/// Two lengths and the number of a provider, before the texts.
const HEAD: usize = 12;
/// No host. Numbers of providers come before it.
const NO_HOST: u32 = u32::MAX;

impl Texts {
    pub(crate) fn put(&mut self, id: &str, host: Option<Host<'_>>) -> TextAt {
        let (provider, reference) = host.unwrap_or((NO_HOST, ""));
        // Many providers know a machine by its id; an empty text says so.
        let reference = if reference == id { "" } else { reference };
        let size = HEAD + id.len() + reference.len();
        if self.chunks.last().is_none_or(|last| last.len() + size > CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK.max(size)));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let at = TextAt((number as u32) << OFFSET_BITS | chunk.len() as u32);
        chunk.extend_from_slice(&(id.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&(reference.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&provider.to_le_bytes());
        chunk.extend_from_slice(id.as_bytes());
        chunk.extend_from_slice(reference.as_bytes());
        self.live += size;
        at
    }

    pub(crate) fn forget(&mut self, at: TextAt) {
        let (id, reference, _) = self.parts(at);
        let size = HEAD + id.len() + reference.len();
        self.live -= size;
        self.wasted += size;
    }

    /// More is forgotten than known.
    pub(crate) const fn is_wasteful(&self) -> bool {
        self.wasted > self.live + CHUNK
    }

    pub(crate) fn id(&self, at: TextAt) -> &str {
        self.parts(at).0
    }

    pub(crate) fn host(&self, at: TextAt) -> Option<Host<'_>> {
        let (id, reference, provider) = self.parts(at);
        let reference = if reference.is_empty() { id } else { reference };
        (provider != NO_HOST).then_some((provider, reference))
    }

    fn parts(&self, at: TextAt) -> (&str, &str, u32) {
        let chunk = &self.chunks[(at.0 >> OFFSET_BITS) as usize];
        let entry = &chunk[(at.0 as usize) & (CHUNK - 1)..];
        let number = |from: usize| {
            u32::from_le_bytes([entry[from], entry[from + 1], entry[from + 2], entry[from + 3]])
        };
        let (id, reference) = (number(0) as usize, number(4) as usize);
        let provider = number(8);
        // Written from texts, so they are texts.
        let text = |from: usize, len: usize| {
            std::str::from_utf8(&entry[from..from + len]).unwrap_or_default()
        };
        (text(HEAD, id), text(HEAD + id, reference), provider)
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
        }
        assert!(!texts.is_wasteful());
        at.iter().for_each(|at| texts.forget(*at));
        assert!(texts.is_wasteful());
    }
}
