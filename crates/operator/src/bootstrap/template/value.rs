//! What expressions are worth.

use std::{collections::BTreeMap, fmt, rc::Rc};

use super::text::Text;

/// A value of the language.
#[derive(Clone)]
pub enum Value {
    /// Nothing: `nil`, or what a template sees that was given no argument.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// One byte of a string.
    Byte(u8),
    /// A number with a point or an exponent.
    Float(f64),
    /// A string.
    String(Text),
    /// A list.
    List(List),
    /// Names and values; walked in the order of the names.
    Map(Rc<BTreeMap<String, Value>>),
    /// Fields with fixed names.
    Struct(Rc<Struct>),
}

/// A piece of a shared list. Cloning and cutting copy nothing.
#[derive(Clone)]
pub struct List {
    type_name: &'static str,
    items: Rc<[Value]>,
    start: usize,
    end: usize,
}

/// Fields with fixed names, in the order in which they print.
pub struct Struct {
    type_name: &'static str,
    fields: Vec<(&'static str, Field)>,
}

/// A field: there already, or made when it is first asked for.
pub enum Field {
    /// There already.
    Ready(Value),
    /// Made when a template reaches it; may fail with what to tell the user.
    /// Such a field does not show when the whole struct is printed.
    Late(Late),
}

/// Makes the value of a field.
pub type Late = Box<dyn Fn() -> Result<Text, String>>;

impl Value {
    /// A string.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self::String(Text::from(text))
    }

    /// A list of strings.
    #[must_use]
    pub fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::list("[]string", texts.into_iter().map(Self::string).collect())
    }

    /// A list; the name of its type shows in errors and for `%T`.
    #[must_use]
    pub fn list(type_name: &'static str, items: Vec<Self>) -> Self {
        Self::List(List { type_name, start: 0, end: items.len(), items: items.into() })
    }

    /// A struct; the name of its type shows in errors and for `%T`.
    #[must_use]
    pub fn structure(type_name: &'static str, fields: Vec<(&'static str, Field)>) -> Self {
        Self::Struct(Rc::new(Struct { type_name, fields }))
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::String(text) => !text.is_empty(),
            Self::List(list) => !list.items().is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Struct(_) => true,
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::String(_) => "string",
            Self::List(list) => list.type_name,
            Self::Map(_) => "map[string]interface {}",
            Self::Struct(fields) => fields.type_name,
        }
    }

    /// A whole number, if it is one.
    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Byte(value) => Some((*value).into()),
            _ => None,
        }
    }
}

impl List {
    pub(super) fn items(&self) -> &[Value] {
        self.items.get(self.start..self.end).unwrap_or_default()
    }

    /// Items `start..end`; `None` if they are not in the list.
    pub(super) fn cut(&self, start: usize, end: usize) -> Option<Self> {
        (start <= end && end <= self.items().len()).then(|| Self {
            type_name: self.type_name,
            items: Rc::clone(&self.items),
            start: self.start + start,
            end: self.start + end,
        })
    }
}

impl Struct {
    pub(super) fn fields(&self) -> &[(&'static str, Field)] {
        &self.fields
    }

    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, field)| field)
    }
}

impl fmt::Debug for Value {
    /// The type alone: values may be join tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}
