//! What the functions do.

use super::{
    super::{
        escape,
        function::Function,
        print::{self, Full, Sink},
        text::Text,
        value::Value,
    },
    Result, State, compare, fault,
};

impl State<'_> {
    pub(super) fn apply(&mut self, function: Function, values: &[Value]) -> Result<Value> {
        match function {
            Function::Print => self.make(|out| print::print(out, values)),
            Function::Println => self.make(|out| print::println(out, values)),
            Function::Html => self.escaped(values, escape::html),
            Function::Js => self.escaped(values, escape::js),
            Function::Urlquery => self.escaped(values, escape::urlquery),
            Function::Not => Ok(Value::Bool(!values.iter().all(Value::is_true))),
            Function::Len => match values {
                [value] => len(value),
                _ => fault("len takes one argument"),
            },
            Function::Index => match values {
                [value, indexes @ ..] => index(value, indexes),
                [] => fault("index takes at least one argument"),
            },
            Function::Slice => match values {
                [value, indexes @ ..] => slice(value, indexes),
                [] => fault("slice takes at least one argument"),
            },
            Function::Eq => {
                for value in values {
                    self.pay_for(value)?;
                }
                compare::equal_any(values).map(Value::Bool)
            }
            Function::Ne | Function::Lt | Function::Le | Function::Gt | Function::Ge => {
                for value in values {
                    self.pay_for(value)?;
                }
                compare::compare(function, values).map(Value::Bool)
            }
            Function::Call => fault("call needs a function, and no value is one"),
            // Taken care of before the arguments are.
            Function::And | Function::Or | Function::Printf => fault("wrong number of arguments"),
        }
    }

    pub(super) fn printf(&mut self, format: &Text, values: &[Value]) -> Result<Value> {
        self.budget.spend_bytes(format.len())?;
        self.make(|out| print::printf::printf(out, format, values))
    }

    /// A string that a step writes.
    fn make(
        &mut self,
        write: impl FnOnce(&mut Sink) -> std::result::Result<(), Full>,
    ) -> Result<Value> {
        let mut out = Sink::new(self.limits.output);
        write(&mut out)?;
        self.budget.keep(out.len())?;
        Ok(Value::String(out.into_bytes().into()))
    }

    fn escaped(
        &mut self,
        values: &[Value],
        escape: fn(&mut Sink, &[u8]) -> std::result::Result<(), Full>,
    ) -> Result<Value> {
        let shown: Vec<Value> = values
            .iter()
            .map(|value| match value {
                Value::Nil => Value::string("<no value>"),
                value => value.clone(),
            })
            .collect();
        let plain = match shown.as_slice() {
            [Value::String(text)] => text.clone(),
            values => match self.make(|out| print::print(out, values))? {
                Value::String(text) => text,
                _ => return fault("nothing was printed"),
            },
        };
        self.make(|out| escape(out, &plain))
    }

    fn pay_for(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::String(text) => self.budget.spend_bytes(text.len()),
            _ => Ok(()),
        }
    }
}

fn len(value: &Value) -> Result<Value> {
    let len = match value {
        Value::String(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.len(),
        other => {
            return fault(format!(
                "len needs a string, a list or a map, not {}",
                other.type_name()
            ));
        }
    };
    match i64::try_from(len) {
        Ok(len) => Ok(Value::Int(len)),
        Err(_) => fault("len is too large"),
    }
}

fn index(value: &Value, indexes: &[Value]) -> Result<Value> {
    if matches!(value, Value::Nil) {
        return fault("index of nil");
    }
    let mut value = value.clone();
    for index in indexes {
        value = match (&value, index) {
            (Value::String(text), index) => Value::Byte(*item(text, place(index, text.len())?)?),
            (Value::List(list), index) => {
                let items = list.items();
                item(items, place(index, items.len())?)?.clone()
            }
            (Value::Map(map), Value::String(name)) => std::str::from_utf8(name)
                .ok()
                .and_then(|name| map.get(name))
                .cloned()
                .unwrap_or(Value::Nil),
            (other, _) => {
                return fault(format!("cannot index a value of type {}", other.type_name()));
            }
        };
    }
    Ok(value)
}

fn item<T>(items: &[T], place: usize) -> Result<&T> {
    match items.get(place) {
        Some(item) => Ok(item),
        None => fault(format!("index {place} is out of range, there are {}", items.len())),
    }
}

/// An index up to and including `most`.
fn place(index: &Value, most: usize) -> Result<usize> {
    let Some(number) = index.as_int() else {
        return fault(format!("an index is a whole number, not {}", index.type_name()));
    };
    match usize::try_from(number) {
        Ok(place) if place <= most => Ok(place),
        _ => fault(format!("index {number} is out of range, there are {most}")),
    }
}

fn slice(value: &Value, indexes: &[Value]) -> Result<Value> {
    let (len, most_indexes) = match value {
        Value::String(text) => (text.len(), 2),
        Value::List(list) => (list.items().len(), 3),
        other => return fault(format!("cannot slice a value of type {}", other.type_name())),
    };
    if indexes.len() > most_indexes {
        return fault(format!(
            "slice of {} takes at most {most_indexes} indexes",
            value.type_name()
        ));
    }
    let mut bounds = [0, len, len];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = place(index, len)?;
    }
    let [start, end, capacity] = bounds;
    let cut = match value {
        Value::String(text) => text.cut(start, end).map(Value::String),
        Value::List(list) => list.cut(start, end).map(Value::List),
        _ => None,
    };
    match cut {
        Some(cut) if end <= capacity => Ok(cut),
        _ => fault(format!("slice indexes are out of order: {start}, {end}")),
    }
}
