//! `eq` and the orders.

use std::cmp::Ordering;

use super::{
    super::{function::Function, value::Value},
    Result, fault,
};

/// Whether the first equals any of the others.
pub(super) fn equal_any(values: &[Value]) -> Result<bool> {
    let Some((first, others)) = values.split_first() else {
        return fault("eq takes at least two arguments");
    };
    if others.is_empty() {
        return fault("eq takes at least two arguments");
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal(a: &Value, b: &Value) -> Result<bool> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return Ok(a == b);
    }
    match (a, b) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        #[expect(clippy::float_cmp, reason = "it is what the template asks")]
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        (Value::String(a), Value::String(b)) => Ok(**a == **b),
        _ => incomparable(a, b),
    }
}

/// `ne` and the four orders, of two values.
pub(super) fn compare(function: Function, values: &[Value]) -> Result<bool> {
    let [a, b] = values else { return fault("a comparison takes two arguments") };
    if function == Function::Ne {
        return equal(a, b).map(|equal| !equal);
    }
    let order = order(a, b)?;
    Ok(match function {
        Function::Lt => order == Some(Ordering::Less),
        Function::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Function::Gt => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn order(a: &Value, b: &Value) -> Result<Option<Ordering>> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return Ok(Some(a.cmp(&b)));
    }
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b)),
        (Value::String(a), Value::String(b)) => Ok(Some((**a).cmp(&**b))),
        _ => incomparable(a, b),
    }
}

fn incomparable<T>(a: &Value, b: &Value) -> Result<T> {
    fault(format!("cannot compare {} with {}", a.type_name(), b.type_name()))
}
