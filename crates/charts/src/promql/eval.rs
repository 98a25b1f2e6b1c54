//! The value of an expression at one time.

use std::collections::BTreeMap;

use super::{
    Aggregate, Error, Expr, Labels, Store,
    functions::{histogram_quantile, over_window, quantile},
};

/// Series with one value each, without names.
pub type Vector = Vec<(Labels, f64)>;

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Scalar(f64),
    /// Series.
    Vector(Vector),
}

/// Evaluates at a time, in seconds.
pub fn evaluate(expr: &Expr, store: &Store, at: i64) -> Result<Value, Error> {
    Ok(match expr {
        Expr::Number(number) => Value::Scalar(*number),
        Expr::Negate(expr) => match evaluate(expr, store, at)? {
            Value::Scalar(number) => Value::Scalar(-number),
            Value::Vector(vector) => Value::Vector(mapped(vector, |value| Some(-value))),
        },
        Expr::Selector(selector) => Value::Vector(store.instant(selector, at)),
        Expr::Subquery { .. } => return Err(Error::new("a range outside of a function", "")),
        Expr::Call { function, arguments } => call(function, arguments, store, at)?,
        Expr::Aggregate(aggregate) => Value::Vector(aggregated(aggregate, store, at)?),
        Expr::Binary { operator, bool, on, left, right } => {
            let (left, right) = (evaluate(left, store, at)?, evaluate(right, store, at)?);
            binary(operator, *bool, on.as_deref(), left, right)
        }
    })
}

fn vector(expr: &Expr, store: &Store, at: i64) -> Result<Vector, Error> {
    match evaluate(expr, store, at)? {
        Value::Vector(vector) => Ok(vector),
        Value::Scalar(_) => Err(Error::new("a number where series are wanted", "")),
    }
}

fn scalar(expr: &Expr, store: &Store, at: i64) -> Result<f64, Error> {
    match evaluate(expr, store, at)? {
        Value::Scalar(number) => Ok(number),
        Value::Vector(_) => Err(Error::new("series where a number is wanted", "")),
    }
}

fn call(function: &str, arguments: &[Expr], store: &Store, at: i64) -> Result<Value, Error> {
    Ok(match (function, arguments) {
        ("time", []) => Value::Scalar(at as f64),
        ("vector", [number]) => Value::Vector(vec![(Labels::new(), scalar(number, store, at)?)]),
        ("abs", [series]) => {
            Value::Vector(mapped(vector(series, store, at)?, |value| Some(value.abs())))
        }
        ("absent", [series]) => {
            let absent = vector(series, store, at)?.is_empty();
            Value::Vector(absent.then(|| (Labels::new(), 1.0)).into_iter().collect())
        }
        ("histogram_quantile", [q, buckets]) => {
            Value::Vector(histogram_quantile(scalar(q, store, at)?, vector(buckets, store, at)?))
        }
        ("quantile_over_time", [q, range]) => {
            let q = scalar(q, store, at)?;
            over(range, store, at, |window| quantile(q, window))?
        }
        (name, [range]) => match over_window(name) {
            Some(function) => over(range, store, at, function)?,
            None => return Err(Error::new(format!("unknown function {name}"), "")),
        },
        (name, _) => return Err(Error::new(format!("wrong arguments of {name}"), "")),
    })
}

/// A function of each series' window.
fn over(
    range: &Expr,
    store: &Store,
    at: i64,
    function: impl Fn(&[(i64, f64)]) -> Option<f64>,
) -> Result<Value, Error> {
    let windows = match range {
        Expr::Selector(selector) => {
            let range = selector.range.ok_or_else(|| Error::new("no range", &selector.name))?;
            store.window(selector, range, at)
        }
        Expr::Subquery { expr, range, step } => {
            let mut windows: BTreeMap<Labels, Vec<(i64, f64)>> = BTreeMap::new();
            // On multiples of the step, as Prometheus aligns them.
            let first = (at - range).div_euclid(*step) + 1;
            for time in (first..=at.div_euclid(*step)).map(|tick| tick * step) {
                for (labels, value) in vector(expr, store, time)? {
                    windows.entry(labels).or_default().push((time, value));
                }
            }
            windows.into_iter().collect()
        }
        _ => return Err(Error::new("a window of something that has none", "")),
    };
    let value = |(labels, window): (Labels, Vec<_>)| Some((labels, function(&window)?));
    Ok(Value::Vector(windows.into_iter().filter_map(value).collect()))
}

fn aggregated(aggregate: &Aggregate, store: &Store, at: i64) -> Result<Vector, Error> {
    let series = vector(&aggregate.expr, store, at)?;
    if let Some(parameter) = &aggregate.parameter {
        let mut series = series;
        series.sort_by(|a, b| b.1.total_cmp(&a.1));
        series.truncate(scalar(parameter, store, at)? as usize);
        return Ok(series);
    }
    let mut groups: BTreeMap<Labels, Vec<f64>> = BTreeMap::new();
    for (labels, value) in series {
        groups.entry(only(&labels, &aggregate.by)).or_default().push(value);
    }
    let folded = |values: Vec<f64>| match aggregate.operator.as_str() {
        "min" => values.into_iter().fold(f64::INFINITY, f64::min),
        "max" => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        "count" => values.len() as f64,
        "avg" => values.iter().sum::<f64>() / values.len() as f64,
        _ => values.iter().sum(),
    };
    Ok(groups.into_iter().map(|(labels, values)| (labels, folded(values))).collect())
}

fn binary(operator: &str, bool: bool, on: Option<&[String]>, left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Scalar(left), Value::Scalar(right)) => {
            Value::Scalar(apply(operator, true, left, right).unwrap_or(f64::NAN))
        }
        (Value::Vector(left), Value::Scalar(right)) => {
            Value::Vector(mapped(left, |value| apply(operator, bool, value, right)))
        }
        (Value::Scalar(left), Value::Vector(right)) => Value::Vector(mapped(right, |value| {
            // A filter keeps the series' own value.
            let found = apply(operator, bool, left, value)?;
            Some(if comparison(operator) && !bool { value } else { found })
        })),
        (Value::Vector(left), Value::Vector(right)) => {
            Value::Vector(joined(operator, bool, on, left, right))
        }
    }
}

fn joined(
    operator: &str,
    bool: bool,
    on: Option<&[String]>,
    left: Vector,
    right: Vector,
) -> Vector {
    let key = |labels: &Labels| on.map_or_else(|| labels.clone(), |on| only(labels, on));
    let find = |side: &Vector, labels: &Labels| {
        side.iter().find(|other| key(&other.0) == key(labels)).map(|other| other.1)
    };
    match operator {
        "and" => left.into_iter().filter(|one| find(&right, &one.0).is_some()).collect(),
        "unless" => left.into_iter().filter(|one| find(&right, &one.0).is_none()).collect(),
        "or" => {
            let more: Vector =
                right.into_iter().filter(|one| find(&left, &one.0).is_none()).collect();
            left.into_iter().chain(more).collect()
        }
        _ => left
            .into_iter()
            .filter_map(|(labels, value)| {
                let value = apply(operator, bool, value, find(&right, &labels)?)?;
                Some((labels, value))
            })
            .collect(),
    }
}

fn comparison(operator: &str) -> bool {
    matches!(operator, "==" | "!=" | ">" | "<" | ">=" | "<=")
}

/// None: the comparison filters it out.
fn apply(operator: &str, bool: bool, left: f64, right: f64) -> Option<f64> {
    let holds = match operator {
        "+" => return Some(left + right),
        "-" => return Some(left - right),
        "*" => return Some(left * right),
        "/" => return Some(left / right),
        "%" => return Some(left % right),
        "==" => left == right,
        "!=" => left != right,
        ">" => left > right,
        "<" => left < right,
        ">=" => left >= right,
        _ => left <= right,
    };
    if bool { Some(f64::from(u8::from(holds))) } else { holds.then_some(left) }
}

fn mapped(vector: Vector, value: impl Fn(f64) -> Option<f64>) -> Vector {
    vector.into_iter().filter_map(|(labels, one)| Some((labels, value(one)?))).collect()
}

fn only(labels: &Labels, names: &[String]) -> Labels {
    let kept = labels.iter().filter(|(name, _)| names.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::promql::parse;

    fn store() -> Store {
        let mut store = Store { step: 60, ..Store::default() };
        store.plant(r#"up{pod="a"}"#, "1x20").unwrap();
        store.plant(r#"up{pod="b"}"#, "0x20").unwrap();
        store.plant(r#"c_total{pod="a"}"#, "0+6x10 0+6x9").unwrap();
        store.plant(r#"h_bucket{le="1"}"#, "0+5x20").unwrap();
        store.plant(r#"h_bucket{le="2"}"#, "0+10x20").unwrap();
        store.plant(r#"h_bucket{le="+Inf"}"#, "0+10x20").unwrap();
        store
    }

    fn values(expr: &str) -> Vec<f64> {
        match evaluate(&parse(expr).unwrap(), &store(), 1200).unwrap() {
            Value::Scalar(number) => vec![number],
            Value::Vector(vector) => vector.into_iter().map(|one| one.1).collect(),
        }
    }

    #[test]
    fn expressions_come_to_what_prometheus_says() {
        for (expr, expected) in [
            ("1 + 2 * 3 - 4", vec![3.0]),
            ("up == 1", vec![1.0]),
            ("up == bool 1", vec![1.0, 0.0]),
            ("count(up == 1) or vector(0)", vec![1.0]),
            ("count(up == 2) or vector(0)", vec![0.0]),
            ("sum by (pod) (up)", vec![1.0, 0.0]),
            (r#"up{pod!="a"}"#, vec![0.0]),
            (r#"up{pod=~"a|c"} unless up{pod="b"}"#, vec![1.0]),
            ("up and on () (up == 2)", vec![]),
            // A restart in the window: 60 before it, then 54.
            ("increase(c_total[30m])", vec![114.0]),
            ("rate(c_total[5m])", vec![0.1]),
            ("changes(up[10m])", vec![0.0, 0.0]),
            ("histogram_quantile(0.75, rate(h_bucket[5m]))", vec![1.5]),
            ("count_over_time((up == 1)[10m:1m])", vec![10.0]),
            ("quantile_over_time(0.5, c_total[3m])", vec![48.0]),
            ("absent(nothing)", vec![1.0]),
            ("time() - 200", vec![1000.0]),
            ("up offset 30m", vec![]),
            ("topk(1, up)", vec![1.0]),
            ("-up{pod=\"a\"}", vec![-1.0]),
        ] {
            assert_eq!(values(expr), expected, "{expr}");
        }
    }
}
