//! `printf`: the format and its verbs.

use super::{
    super::{text::first_char, value::Value},
    Flags, Full, Sink,
    verb::Printer,
};

/// Widths and precisions past this are nonsense.
const LARGEST: i64 = 1_000_000;

/// Writes the arguments as the format says. A wrong or missing one shows in
/// the text and is no error.
pub(in super::super) fn printf(
    out: &mut Sink,
    format: &[u8],
    arguments: &[Value],
) -> Result<(), Full> {
    let mut run = Run {
        out,
        format,
        at: 0,
        arguments,
        next: 0,
        reordered: false,
        good_index: true,
        no_bracket_ahead: false,
    };
    run.run()?;
    let Run { next, reordered, .. } = run;
    if !reordered && next < arguments.len() {
        extra(out, arguments.get(next..).unwrap_or_default())?;
    }
    Ok(())
}

fn extra(out: &mut Sink, arguments: &[Value]) -> Result<(), Full> {
    out.write(b"%!(EXTRA ")?;
    for (index, argument) in arguments.iter().enumerate() {
        if index > 0 {
            out.write(b", ")?;
        }
        out.write(argument.type_name().as_bytes())?;
        if !matches!(argument, Value::Nil) {
            out.write(b"=")?;
            super::value(out, argument)?;
        }
    }
    out.write(b")")
}

struct Run<'r> {
    out: &'r mut Sink,
    format: &'r [u8],
    at: usize,
    arguments: &'r [Value],
    /// The argument that the next verb takes.
    next: usize,
    /// An index was used, so unused arguments are nobody's mistake.
    reordered: bool,
    good_index: bool,
    /// A bracket that is not closed is looked for once, not once per verb.
    no_bracket_ahead: bool,
}

impl Run<'_> {
    fn run(&mut self) -> Result<(), Full> {
        while self.at < self.format.len() {
            let rest = &self.format[self.at..];
            let plain = rest.iter().position(|&byte| byte == b'%').unwrap_or(rest.len());
            self.out.write(&rest[..plain])?;
            self.at += plain;
            if self.at < self.format.len() {
                self.at += 1;
                self.directive()?;
            }
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn directive(&mut self) -> Result<(), Full> {
        self.good_index = true;
        let mut flags = self.flags();
        let mut after_index = self.index();
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.integer_argument() {
                None => self.out.write(b"%!(BADWIDTH)")?,
                Some(width) => {
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                    if width < 0 {
                        flags.minus = true;
                        flags.zero = false;
                    }
                }
            }
            after_index = false;
        } else {
            flags.width = self.number();
            if after_index && flags.width.is_some() {
                self.good_index = false;
            }
        }
        if self.peek() == Some(b'.') && self.at + 1 < self.format.len() {
            self.at += 1;
            if after_index {
                self.good_index = false;
            }
            after_index = self.index();
            if self.peek() == Some(b'*') {
                self.at += 1;
                flags.precision =
                    self.integer_argument().and_then(|precision| usize::try_from(precision).ok());
                if flags.precision.is_none() {
                    self.out.write(b"%!(BADPREC)")?;
                }
                after_index = false;
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.index();
        }
        self.verb(flags)
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        flags
    }

    fn verb(&mut self, mut flags: Flags) -> Result<(), Full> {
        let rest = self.format.get(self.at..).unwrap_or_default();
        let Some((verb, width)) = first_char(rest) else {
            return self.out.write(b"%!(NOVERB)");
        };
        self.at += width;
        let verb = verb.unwrap_or(char::REPLACEMENT_CHARACTER);
        if verb == '%' {
            return self.out.write(b"%");
        }
        if !self.good_index {
            return self.note(verb, b"(BADINDEX)");
        }
        let Some(argument) = self.arguments.get(self.next) else {
            return self.note(verb, b"(MISSING)");
        };
        if matches!(verb, 'v' | 'w') {
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        self.next += 1;
        Printer::new(self.out, flags).argument(argument, verb)
    }

    fn note(&mut self, verb: char, note: &[u8]) -> Result<(), Full> {
        self.out.write(b"%!")?;
        self.out.write_char(verb)?;
        self.out.write(note)
    }

    /// The argument that `*` stands for.
    fn integer_argument(&mut self) -> Option<i64> {
        let argument = self.arguments.get(self.next)?;
        self.next += 1;
        argument.as_int().filter(|value| (-LARGEST..=LARGEST).contains(value))
    }

    /// Decimal digits; a number that is too large swallows the format.
    fn number(&mut self) -> Option<usize> {
        let (number, end) = number(self.format, self.at, self.format.len());
        self.at = end;
        number
    }

    /// `[n]`, if it stands here: takes the n-th argument next.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        let close = if rest.len() < 3 || self.no_bracket_ahead {
            None
        } else {
            rest.iter().position(|&byte| byte == b']')
        };
        let Some(close) = close else {
            self.no_bracket_ahead |= rest.len() >= 3;
            self.good_index = false;
            self.at += 1;
            return false;
        };
        let (found, end) = number(rest, 1, close);
        self.at += close + 1;
        let index = found.filter(|_| end == close);
        match index.and_then(|index| index.checked_sub(1)) {
            Some(index) if index < self.arguments.len() => self.next = index,
            _ => self.good_index = false,
        }
        index.is_some()
    }
}

/// The number at `start`, and where it ends.
fn number(text: &[u8], start: usize, end: usize) -> (Option<usize>, usize) {
    let mut value: i64 = 0;
    let mut at = start;
    while at < end && text[at].is_ascii_digit() {
        if value > LARGEST {
            return (None, end);
        }
        value = value * 10 + i64::from(text[at] - b'0');
        at += 1;
    }
    let found = (at > start).then(|| usize::try_from(value).unwrap_or(0));
    (found, at)
}
