//! Flags, width and precision.

use super::{super::text::chars, Full, Sink};

/// What stands between the percent sign and the verb.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`: structs with the names of their fields.
    pub(super) plus_v: bool,
    /// `%#v`: as the value would be written in a program.
    pub(super) sharp_v: bool,
}

impl Flags {
    /// Writes text, filled up to the width in characters.
    pub(super) fn pad(&self, out: &mut Sink, text: &[u8]) -> Result<(), Full> {
        let fill = match self.width {
            None | Some(0) => 0,
            Some(width) => width.saturating_sub(chars(text).count()),
        };
        if self.minus {
            out.write(text)?;
            self.fill(out, fill)
        } else {
            self.fill(out, fill)?;
            out.write(text)
        }
    }

    /// Writes filling alone. Zeros only ever stand on the left.
    pub(super) fn fill(&self, out: &mut Sink, times: usize) -> Result<(), Full> {
        out.repeat(if self.zero && !self.minus { b'0' } else { b' ' }, times)
    }

    /// As many characters of the text as the precision allows.
    pub(super) fn truncate<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let Some(precision) = self.precision else { return text };
        let len = chars(text).take(precision).map(|(_, bytes)| bytes.len()).sum();
        text.get(..len).unwrap_or(text)
    }

    pub(super) fn without_zero(mut self) -> Self {
        self.zero = false;
        self
    }
}
