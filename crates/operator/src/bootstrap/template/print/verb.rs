//! One value under one verb.

use super::{
    super::value::{Field, Value},
    Flags, Full, Sink, float,
    integer::Integer,
    quote,
};

/// `None` where a type does not know the verb.
pub(super) type Printed = Option<Result<(), Full>>;

/// Writes values under the same flags, also those inside a list.
pub(super) struct Printer<'o> {
    out: &'o mut Sink,
    flags: Flags,
}

impl<'o> Printer<'o> {
    pub(super) fn new(out: &'o mut Sink, flags: Flags) -> Self {
        Self { out, flags }
    }

    /// An argument of `print` or `printf`.
    pub(super) fn argument(&mut self, value: &Value, verb: char) -> Result<(), Full> {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.flags.pad(self.out, b"<nil>"),
            (Value::Nil, _) | (_, 'p' | 'w') => self.wrong_verb(value, verb),
            (_, 'T') => {
                let name = self.flags.truncate(value.type_name().as_bytes());
                self.flags.pad(self.out, name)
            }
            _ => self.value(value, verb),
        }
    }

    fn value(&mut self, value: &Value, verb: char) -> Result<(), Full> {
        let (out, flags) = (&mut *self.out, self.flags);
        let printed = match value {
            Value::Nil if flags.sharp_v => Some(out.write(b"interface {}(nil)")),
            Value::Nil => Some(out.write(b"<nil>")),
            Value::Bool(value) => matches!(verb, 't' | 'v')
                .then(|| flags.pad(out, if *value { b"true" } else { b"false" })),
            Value::Int(value) => Integer::from(*value).print(out, flags, verb),
            Value::Byte(value) => Integer::from(*value).print(out, flags, verb),
            Value::Float(value) => float::print(out, flags, *value, verb),
            Value::String(text) => string(out, flags, text, verb),
            Value::List(list) => {
                let items = list.items().iter().map(|item| (None, Some(item)));
                Some(self.all(value, "[", items, "]", verb))
            }
            Value::Map(map) => {
                let items = map.iter().map(|(name, item)| (Some(name.as_str()), Some(item)));
                Some(self.all(value, "map[", items, "]", verb))
            }
            Value::Struct(fields) => {
                let named = flags.plus_v || flags.sharp_v;
                let items = fields.fields().iter().map(|(name, field)| {
                    let item = match field {
                        Field::Ready(value) => Some(value),
                        Field::Late(_) => None,
                    };
                    (named.then_some(*name), item)
                });
                Some(self.all(value, "{", items, "}", verb))
            }
        };
        printed.unwrap_or_else(|| self.wrong_verb(value, verb))
    }

    /// The values inside of one, with their names where they have any.
    fn all<'v>(
        &mut self,
        whole: &Value,
        open: &str,
        items: impl Iterator<Item = (Option<&'v str>, Option<&'v Value>)>,
        close: &str,
        verb: char,
    ) -> Result<(), Full> {
        let program = self.flags.sharp_v;
        if program {
            self.out.write(whole.type_name().as_bytes())?;
        }
        self.out.write(if program { b"{" } else { open.as_bytes() })?;
        for (index, (name, item)) in items.enumerate() {
            if index > 0 {
                self.out.write(if program { b", " } else { b" " })?;
            }
            if let Some(name) = name {
                if matches!(whole, Value::Map(_)) {
                    self.value(&Value::string(name), verb)?;
                } else {
                    self.out.write(name.as_bytes())?;
                }
                self.out.write(b":")?;
            }
            match item {
                Some(item) => self.value(item, verb)?,
                // Made for one reader only; see `Field::Late`.
                None => self.out.write(b"***")?,
            }
        }
        self.out.write(if program { b"}" } else { close.as_bytes() })
    }

    /// `%!d(string=x)`: not an error, but nobody can miss it.
    fn wrong_verb(&mut self, value: &Value, verb: char) -> Result<(), Full> {
        self.out.write(b"%!")?;
        self.out.write_char(verb)?;
        self.out.write(b"(")?;
        self.out.write(value.type_name().as_bytes())?;
        if !matches!(value, Value::Nil) {
            self.out.write(b"=")?;
            self.value(value, 'v')?;
        }
        self.out.write(b")")
    }
}

fn string(out: &mut Sink, flags: Flags, text: &[u8], verb: char) -> Printed {
    Some(match verb {
        'v' if flags.sharp_v => quoted(out, flags, text),
        'v' | 's' => flags.pad(out, flags.truncate(text)),
        'q' => quoted(out, flags, text),
        'x' => hexadecimal(out, flags, text, b"0123456789abcdefx"),
        'X' => hexadecimal(out, flags, text, b"0123456789ABCDEFX"),
        _ => return None,
    })
}

fn quoted(out: &mut Sink, flags: Flags, text: &[u8]) -> Result<(), Full> {
    let text = flags.truncate(text);
    if flags.sharp && quote::fits_backquotes(text) {
        return flags.pad(out, &[b"`", text, b"`"].concat());
    }
    flags.pad(out, &quote::string(text, flags.plus))
}

fn hexadecimal(out: &mut Sink, flags: Flags, text: &[u8], digits: &[u8; 17]) -> Result<(), Full> {
    let text = text.get(..flags.precision.unwrap_or(text.len())).unwrap_or(text);
    let mut hex = Vec::with_capacity(text.len() * 2 + 2);
    for (index, byte) in text.iter().enumerate() {
        if flags.space && index > 0 {
            hex.push(b' ');
        }
        if flags.sharp && (flags.space || index == 0) {
            hex.extend([b'0', digits[16]]);
        }
        hex.extend([digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
    }
    flags.pad(out, &hex)
}
