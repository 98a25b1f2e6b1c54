//! Walks a parsed template and writes.
//!
//! The position of the node being looked at is kept in `at`; an error is
//! reported there. Nothing changes it between the failure and the report.

mod budget;
mod call;
mod compare;
mod expression;
mod functions;
mod variables;

use std::rc::Rc;

use self::{budget::Budget, variables::Variables};
use super::{
    Limits, Template,
    error::{NAME, RenderError},
    node::{Choice, List, Node, Position, Range},
    parser::MAX_DEPTH,
    print::{self, Full, Sink},
    value::Value,
};

/// Why rendering stops.
struct Fault(String);

type Result<T> = std::result::Result<T, Fault>;

impl From<Full> for Fault {
    fn from(_: Full) -> Self {
        Self("text grows past the limit of 1 MiB".into())
    }
}

fn fault<T>(message: impl Into<String>) -> Result<T> {
    Err(Fault(message.into()))
}

/// Renders the main body.
pub(super) fn render(
    template: &Template,
    data: &Value,
    limits: Limits,
) -> std::result::Result<Vec<u8>, RenderError> {
    let mut state = State {
        template,
        limits,
        out: Sink::new(limits.output),
        variables: Variables::new(data.clone()),
        at: 0,
        depth: 0,
        budget: Budget::new(limits),
    };
    match state.main(data) {
        Ok(()) => Ok(state.out.into_bytes()),
        Err(Fault(message)) => Err(RenderError::at(&template.source, state.at, message)),
    }
}

struct State<'t> {
    template: &'t Template,
    limits: Limits,
    out: Sink,
    variables: Variables,
    at: Position,
    depth: usize,
    budget: Budget,
}

/// How a list ended.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl<'t> State<'t> {
    fn main(&mut self, data: &Value) -> Result<()> {
        match self.template.definitions.get(NAME.as_bytes()) {
            Some(main) => self.list(data, &main.body).map(|_| ()),
            None => Ok(()),
        }
    }

    fn list(&mut self, dot: &Value, list: &'t List) -> Result<Flow> {
        for node in list {
            self.budget.spend(1)?;
            let flow = self.node(dot, node)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Value, node: &'t Node) -> Result<Flow> {
        match node {
            Node::Text { position, bytes } => {
                self.at = *position;
                self.budget.spend_bytes(bytes.len())?;
                self.out.write(bytes)?;
            }
            Node::Action { position, pipeline } => {
                self.at = *position;
                let value = self.pipeline(dot, pipeline)?;
                if pipeline.variables.is_empty() {
                    self.at = *position;
                    self.write_value(&value)?;
                }
            }
            Node::If(choice) => return self.choice(dot, choice, false),
            Node::With(choice) => return self.choice(dot, choice, true),
            Node::Range(range) => return self.range(dot, range),
            Node::Template { position, name, argument } => {
                self.at = *position;
                self.call_template(dot, name, argument.as_ref())?;
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn write_value(&mut self, value: &Value) -> Result<()> {
        let before = self.out.len();
        match value {
            Value::Nil => self.out.write(b"<no value>")?,
            value => print::value(&mut self.out, value)?,
        }
        self.budget.spend_bytes(self.out.len() - before)
    }

    /// `if`, or `with`, which sets the dot.
    fn choice(&mut self, dot: &Value, choice: &'t Choice, sets_dot: bool) -> Result<Flow> {
        let mark = self.variables.mark();
        self.enter()?;
        let mut taken = None;
        for branch in &choice.branches {
            self.budget.spend(1)?;
            self.at = branch.pipeline.position;
            let value = self.pipeline(dot, &branch.pipeline)?;
            if value.is_true() {
                taken = Some((value, &branch.body));
                break;
            }
        }
        let flow = match (taken, &choice.otherwise) {
            (Some((value, body)), _) if sets_dot => self.list(&value, body)?,
            (Some((_, body)), _) | (None, Some(body)) => self.list(dot, body)?,
            (None, None) => Flow::Next,
        };
        self.leave();
        self.variables.forget_since(mark);
        Ok(flow)
    }

    fn range(&mut self, dot: &Value, range: &'t Range) -> Result<Flow> {
        let mark = self.variables.mark();
        self.enter()?;
        self.at = range.pipeline.position;
        let value = self.pipeline(dot, &range.pipeline)?;
        let ran = match &value {
            Value::Int(_) | Value::Byte(_) if range.pipeline.variables.len() > 1 => {
                return fault("a range over a number has one variable, not two");
            }
            Value::Int(end) => {
                self.iterate(range, (0..*end).map(|i| (Value::Nil, Value::Int(i))))?
            }
            Value::Byte(end) => {
                self.iterate(range, (0..*end).map(|i| (Value::Nil, Value::Byte(i))))?
            }
            Value::List(list) => {
                let items = list.items().iter().cloned();
                self.iterate(range, (0..).map(Value::Int).zip(items))?
            }
            Value::Map(map) => {
                let map = Rc::clone(map);
                let items = map.iter().map(|(name, item)| (Value::string(name), item.clone()));
                self.iterate(range, items)?
            }
            Value::Nil => Iterated::Nothing,
            other => {
                return fault(format!(
                    "range needs a list, a map or a whole number, not {}",
                    other.type_name()
                ));
            }
        };
        let flow = match (ran, &range.otherwise) {
            // A break in the `else` part leaves this range alone.
            (Iterated::Nothing, Some(body)) => match self.list(dot, body)? {
                Flow::Break => Flow::Next,
                flow => flow,
            },
            _ => Flow::Next,
        };
        self.leave();
        self.variables.forget_since(mark);
        Ok(flow)
    }

    fn iterate(
        &mut self,
        range: &'t Range,
        items: impl Iterator<Item = (Value, Value)>,
    ) -> Result<Iterated> {
        let pipeline = &range.pipeline;
        let mark = self.variables.mark();
        let mut ran = Iterated::Nothing;
        for (index, item) in items {
            ran = Iterated::Some;
            self.budget.spend(1)?;
            match (pipeline.variables.as_slice(), pipeline.assigns) {
                ([first, second], true) => {
                    self.assign(first, index)?;
                    self.assign(second, item.clone())?;
                }
                ([only], true) => self.assign(only, item.clone())?,
                ([_, _], false) => {
                    self.variables.set_from_top(1, item.clone());
                    self.variables.set_from_top(2, index);
                }
                ([_], false) => self.variables.set_from_top(1, item.clone()),
                _ => {}
            }
            let flow = self.list(&item, &range.body)?;
            self.variables.forget_since(mark);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(ran)
    }

    fn call_template(
        &mut self,
        dot: &Value,
        name: &[u8],
        argument: Option<&'t super::node::Pipeline>,
    ) -> Result<()> {
        let Some(definition) = self.template.definitions.get(name) else {
            let name = String::from_utf8_lossy(name);
            return fault(format!("no template {name:?}; write one with {{{{define}}}}"));
        };
        self.enter()?;
        let argument = match argument {
            Some(pipeline) => self.pipeline(dot, pipeline)?,
            None => Value::Nil,
        };
        // A template sees nothing of its caller.
        let own = Variables::new(argument.clone());
        let callers = std::mem::replace(&mut self.variables, own);
        self.list(&argument, &definition.body)?;
        self.variables = callers;
        self.leave();
        Ok(())
    }

    fn assign(&mut self, name: &str, value: Value) -> Result<()> {
        let found = self.variables.assign(name, value);
        self.budget.spend(self.variables.len_walked())?;
        if found { Ok(()) } else { fault(format!("variable {name} was never declared with :=")) }
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return fault(format!(
                "blocks, parentheses and templates are nested deeper than {MAX_DEPTH}"
            ));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }
}

enum Iterated {
    Nothing,
    Some,
}
