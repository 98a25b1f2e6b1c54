//! Calls of functions: counting, evaluating and handing over arguments.

use super::{
    super::{
        function::Function,
        node::{Operand, Term},
        text::Text,
        value::Value,
    },
    Result, State, fault,
};

impl<'t> State<'t> {
    /// `last`, the value from before the pipe, is the last argument.
    pub(super) fn call(
        &mut self,
        dot: &Value,
        function: Function,
        arguments: &'t [Operand],
        last: Option<Value>,
    ) -> Result<Value> {
        let at = self.at;
        let count = arguments.len() + usize::from(last.is_some());
        let (fewest, more) = function.arity();
        if count < fewest || count > fewest && !more {
            let least = if more { "at least " } else { "" };
            let name = function.name();
            return fault(format!("{name} takes {least}{fewest} arguments, not {count}"));
        }
        if matches!(function, Function::And | Function::Or) {
            return self.first_decisive(dot, function == Function::Or, arguments, last);
        }
        let mut values = Vec::with_capacity(count);
        let mut format = None;
        for argument in arguments {
            if function == Function::Printf && format.is_none() {
                format = Some(self.format(dot, argument)?);
            } else {
                values.push(self.operand(dot, argument)?);
            }
        }
        match last {
            Some(value) if function == Function::Printf && format.is_none() => {
                format = Some(as_format(value)?);
            }
            last => values.extend(last),
        }
        // The function itself is to blame for what goes wrong in it; what goes
        // wrong with its result is reported where evaluation has got to.
        let behind = std::mem::replace(&mut self.at, at);
        let value = match format {
            Some(format) => self.printf(&format, &values)?,
            None => self.apply(function, &values)?,
        };
        self.at = behind;
        Ok(value)
    }

    /// `and` and `or` look no further than they must.
    fn first_decisive(
        &mut self,
        dot: &Value,
        decisive: bool,
        arguments: &'t [Operand],
        last: Option<Value>,
    ) -> Result<Value> {
        let mut value = Value::Nil;
        for argument in arguments {
            value = self.operand(dot, argument)?;
            if value.is_true() == decisive {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn format(&mut self, dot: &Value, argument: &'t Operand) -> Result<Text> {
        self.at = argument.position;
        if matches!(argument.term, Term::Nil | Term::Number(_) | Term::Bool(_)) {
            return fault("the first argument of printf is a string");
        }
        as_format(self.operand(dot, argument)?)
    }
}

fn as_format(value: Value) -> Result<Text> {
    match value {
        Value::String(text) => Ok(text),
        other => {
            fault(format!("the first argument of printf is a string, not {}", other.type_name()))
        }
    }
}
