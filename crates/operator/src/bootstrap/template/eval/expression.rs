//! Pipelines, commands and their operands.

use super::{
    super::{
        literal::Number,
        node::{Command, Name, Operand, Pipeline, Term},
        value::{Field, Value},
    },
    Result, State, fault,
};

impl<'t> State<'t> {
    /// Declares and assigns its variables too.
    pub(super) fn pipeline(&mut self, dot: &Value, pipeline: &'t Pipeline) -> Result<Value> {
        self.at = pipeline.position;
        let mut last = None;
        for command in &pipeline.commands {
            self.budget.spend(1)?;
            last = Some(self.command(dot, command, last)?);
        }
        let value = last.unwrap_or(Value::Nil);
        for name in &pipeline.variables {
            if pipeline.assigns {
                self.assign(name, value.clone())?;
            } else {
                self.variables.declare(name, value.clone());
            }
        }
        Ok(value)
    }

    /// `last` is the value of the command before the pipe.
    fn command(&mut self, dot: &Value, command: &'t Command, last: Option<Value>) -> Result<Value> {
        let word = &command.word;
        let has_arguments = !command.arguments.is_empty() || last.is_some();
        match &word.term {
            Term::Function(function) => {
                self.at = word.position;
                self.call(dot, *function, &command.arguments, last)
            }
            Term::Pipeline(pipeline) => {
                self.refuse_arguments(has_arguments)?;
                self.enter()?;
                let value = self.pipeline(dot, pipeline)?;
                self.leave();
                Ok(value)
            }
            Term::Field(path) => {
                self.at = word.position;
                self.fields(dot.clone(), path, has_arguments)
            }
            Term::Variable(name, path) => {
                self.at = word.position;
                let value = self.variable(name)?;
                if path.is_empty() {
                    self.refuse_arguments(has_arguments)?;
                    return Ok(value);
                }
                self.fields(value, path, has_arguments)
            }
            Term::Chain(inner, path) => {
                self.at = word.position;
                let value = self.operand(dot, inner)?;
                self.fields(value, path, has_arguments)
            }
            Term::Nil => {
                self.at = word.position;
                self.refuse_arguments(has_arguments)?;
                fault("nil is not a command")
            }
            Term::Dot | Term::Bool(_) | Term::Number(_) | Term::String(_) => {
                self.at = word.position;
                self.refuse_arguments(has_arguments)?;
                self.operand(dot, word)
            }
        }
    }

    fn refuse_arguments(&self, has_arguments: bool) -> Result<()> {
        if has_arguments { fault("only a function takes arguments") } else { Ok(()) }
    }

    /// A word that stands for a value, as an argument does.
    pub(super) fn operand(&mut self, dot: &Value, operand: &'t Operand) -> Result<Value> {
        self.at = operand.position;
        self.budget.spend(1)?;
        Ok(match &operand.term {
            Term::Dot => dot.clone(),
            Term::Nil => Value::Nil,
            Term::Bool(value) => Value::Bool(*value),
            Term::Number(Number::Int(value)) => Value::Int(*value),
            Term::Number(Number::Float(value)) => Value::Float(*value),
            Term::Number(Number::TooBig) => {
                return fault("number is larger than 9223372036854775807");
            }
            Term::String(text) => Value::String(text.clone()),
            Term::Field(path) => self.fields(dot.clone(), path, false)?,
            Term::Variable(name, path) => {
                let value = self.variable(name)?;
                self.fields(value, path, false)?
            }
            Term::Function(function) => self.call(dot, *function, &[], None)?,
            Term::Pipeline(pipeline) => {
                self.enter()?;
                let value = self.pipeline(dot, pipeline)?;
                self.leave();
                value
            }
            Term::Chain(inner, path) => {
                let value = self.operand(dot, inner)?;
                self.fields(value, path, false)?
            }
        })
    }

    fn variable(&mut self, name: &str) -> Result<Value> {
        self.budget.spend(self.variables.len_walked())?;
        match self.variables.get(name) {
            Some(value) => Ok(value.clone()),
            None => fault(format!("variable {name} was never declared with :=")),
        }
    }

    /// `.A.B.C` of a value. Only the last may be refused for its arguments.
    fn fields(&mut self, value: Value, path: &[Name], has_arguments: bool) -> Result<Value> {
        let mut value = value;
        for (index, name) in path.iter().enumerate() {
            self.budget.spend(1)?;
            value = field(&value, name, has_arguments && index + 1 == path.len())?;
        }
        Ok(value)
    }
}

fn field(value: &Value, name: &str, has_arguments: bool) -> Result<Value> {
    let taken = match value {
        // Nothing has every field, and each is nothing.
        Value::Nil => return Ok(Value::Nil),
        Value::Map(map) => map.get(name).cloned().unwrap_or(Value::Nil),
        Value::Struct(fields) => match fields.field(name) {
            Some(_) if has_arguments => Value::Nil,
            Some(Field::Ready(value)) => value.clone(),
            Some(Field::Late(make)) => match make() {
                Ok(text) => Value::String(text),
                Err(message) => return fault(message),
            },
            None => {
                let known: Vec<_> = fields.fields().iter().map(|(name, _)| *name).collect();
                return fault(format!("no field {name}; there are {}", known.join(", ")));
            }
        },
        other => {
            return fault(format!("no field {name} in a value of type {}", other.type_name()));
        }
    };
    if has_arguments { fault(format!("field {name} takes no arguments")) } else { Ok(taken) }
}
