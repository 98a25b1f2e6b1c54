//! Which labels the machine must have (§8.2).

use std::collections::BTreeSet;

use bigfleet_crds::{Operator, Requirement};
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};

use crate::pod::Pod;

/// Asked of every machine when nothing else is: a profile without requirements would match
/// what is no machine at all.
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// One term of a node affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    expressions: Box<[Expression]>,
    fields: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Expression {
    requirement: Requirement,
    /// The requirement asks less than the pod does.
    widened: bool,
}

impl Term {
    /// What is kept of `term`.
    #[must_use]
    pub fn of(term: &NodeSelectorTerm) -> Self {
        Self {
            expressions: term.match_expressions.iter().flatten().map(Expression::of).collect(),
            fields: term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty()),
        }
    }

    /// Such a term matches no node.
    fn is_empty(&self) -> bool {
        self.expressions.is_empty() && !self.fields
    }

    /// Where this term and `other` differ, if it is in the values of one `In` alone.
    fn differs_in_values(&self, other: &Self) -> Option<(usize, usize)> {
        if self.expressions.len() != other.expressions.len() || self.fields || other.fields {
            return None;
        }
        let (mine, theirs) = (only(self, other)?, only(other, self)?);
        let (a, b) = (&self.expressions[mine].requirement, &other.expressions[theirs].requirement);
        (a.key == b.key && a.operator == Operator::In && b.operator == Operator::In)
            .then_some((mine, theirs))
    }
}

/// The one expression of `a` that `b` lacks.
fn only(a: &Term, b: &Term) -> Option<usize> {
    let lacks = |expression: &Expression| !b.expressions.iter().any(|it| it.same(expression));
    let mut lacking = (0..a.expressions.len()).filter(|&at| lacks(&a.expressions[at]));
    lacking.next().filter(|_| lacking.next().is_none())
}

impl Expression {
    fn of(written: &NodeSelectorRequirement) -> Self {
        let (operator, widened) = match written.operator.as_str() {
            "In" => (Operator::In, false),
            "NotIn" => (Operator::NotIn, false),
            "Exists" => (Operator::Exists, false),
            "DoesNotExist" => (Operator::DoesNotExist, false),
            // Gt and Lt: machines are not compared by size of a label.
            _ => (Operator::Exists, true),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => written.values.clone().unwrap_or_default(),
            _ => Vec::new(),
        };
        Self { requirement: Requirement { key: written.key.clone(), operator, values }, widened }
    }

    /// Equal but for the order of values.
    fn same(&self, other: &Self) -> bool {
        let (a, b) = (&self.requirement, &other.requirement);
        let values = |it: &Requirement| it.values.iter().cloned().collect::<BTreeSet<_>>();
        // A widened one says nothing of what it was: two of them are never known to be equal.
        !self.widened
            && !other.widened
            && a.key == b.key
            && a.operator == b.operator
            && (a.values == b.values || values(a) == values(b))
    }
}

/// Requirements, and what was lost on the way to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// For the CapacityRequest.
    pub list: Vec<Requirement>,
    /// Keys of those that were widened to Exists, sorted.
    pub approximated: BTreeSet<String>,
}

impl Requirements {
    fn push(&mut self, expression: &Expression) {
        if expression.widened {
            self.approximated.insert(expression.requirement.key.clone());
        }
        if !self.list.contains(&expression.requirement) {
            self.list.push(expression.requirement.clone());
        }
    }
}

/// Those of `pod` and of the volumes that it is bound to.
#[must_use]
pub fn requirements<'a>(pod: &Pod, volumes: impl IntoIterator<Item = &'a [Term]>) -> Requirements {
    let mut all = Requirements::default();
    for (key, value) in &pod.node_selector {
        all.list.push(Requirement {
            key: key.to_string(),
            operator: Operator::In,
            values: vec![value.to_string()],
        });
    }
    let mut terms = pod.node_affinity.iter().filter(|term| !term.is_empty());
    if let Some(first) = terms.next() {
        match union(first, terms) {
            None => first.expressions.iter().for_each(|expression| all.push(expression)),
            Some((at, merged)) => {
                for (place, expression) in first.expressions.iter().enumerate() {
                    all.push(if place == at { &merged } else { expression });
                }
            }
        }
    }
    for terms in volumes {
        // Several terms are alternatives; which of them holds is the scheduler's to find.
        if let [term] = terms {
            term.expressions.iter().for_each(|expression| all.push(expression));
        }
    }
    if all.list.is_empty() {
        let (key, operator) = (INSTANCE_TYPE.to_owned(), Operator::Exists);
        all.list.push(Requirement { key, operator, values: Vec::new() });
    }
    all
}

/// The expression of `first` that takes in the values of all terms that differ in it alone.
///
/// One expression only: the union over two of them would admit pairs that no term does.
fn union<'a>(first: &Term, others: impl Iterator<Item = &'a Term>) -> Option<(usize, Expression)> {
    let mut merged: Option<(usize, Expression)> = None;
    for other in others {
        let Some((mine, theirs)) = first.differs_in_values(other) else { continue };
        let (at, into) = merged.get_or_insert_with(|| (mine, first.expressions[mine].clone()));
        if *at == mine {
            for value in &other.expressions[theirs].requirement.values {
                if !into.requirement.values.contains(value) {
                    into.requirement.values.push(value.clone());
                }
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests;
