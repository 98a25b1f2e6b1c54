//! Values as text: what an action, `print` and `printf` write.

mod float;
mod integer;
mod pad;
pub(super) mod printf;
pub(super) mod quote;
mod verb;

use super::value::Value;
pub(super) use pad::Flags;

/// The text outgrew its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// Bytes up to a limit. Every byte that is made goes through here, so no
/// width, precision or repetition makes more.
pub(super) struct Sink {
    bytes: Vec<u8>,
    limit: usize,
}

impl Sink {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn write_char(&mut self, char: char) -> Result<(), Full> {
        self.write(char.encode_utf8(&mut [0; 4]).as_bytes())
    }

    pub(super) fn repeat(&mut self, byte: u8, times: usize) -> Result<(), Full> {
        self.reserve(times)?;
        self.bytes.resize(self.bytes.len() + times, byte);
        Ok(())
    }

    fn reserve(&self, more: usize) -> Result<(), Full> {
        let fits = self.bytes.len().checked_add(more).is_some_and(|len| len <= self.limit);
        if fits { Ok(()) } else { Err(Full) }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// One value, plain.
pub(super) fn value(out: &mut Sink, value: &Value) -> Result<(), Full> {
    verb::Printer::new(out, Flags::default()).argument(value, 'v')
}

/// All values, with a space between two of which neither is a string.
pub(super) fn print(out: &mut Sink, values: &[Value]) -> Result<(), Full> {
    let mut after_string = true;
    for value in values {
        let is_string = matches!(value, Value::String(_));
        if !is_string && !after_string {
            out.write(b" ")?;
        }
        self::value(out, value)?;
        after_string = is_string;
    }
    Ok(())
}

/// All values, with a space between any two and a line end behind.
pub(super) fn println(out: &mut Sink, values: &[Value]) -> Result<(), Full> {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.write(b" ")?;
        }
        self::value(out, value)?;
    }
    out.write(b"\n")
}
