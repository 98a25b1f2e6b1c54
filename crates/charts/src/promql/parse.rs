//! From words to an expression.

use regex::Regex;

use super::{
    Aggregate, Error, Expr, Matcher, Selector, known_function,
    lex::{Token, duration, lex},
};

const AGGREGATES: [&str; 6] = ["sum", "min", "max", "avg", "count", "topk"];

/// How strongly operators bind; all are read from the left.
const LEVELS: [&[&str]; 5] = [
    &["or"],
    &["and", "unless"],
    &["==", "!=", ">", "<", ">=", "<="],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Reads an expression.
pub fn parse(expr: &str) -> Result<Expr, Error> {
    let mut parser = Parser { expr, tokens: lex(expr)?, at: 0 };
    let parsed = parser.binary(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(parsed),
        Some(token) => Err(parser.error(format!("unexpected {token:?}"))),
    }
}

struct Parser<'a> {
    expr: &'a str,
    tokens: Vec<Token>,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, message: impl Into<String>) -> Error {
        Error::new(message, self.expr)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Symbol(found)) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Word(found)) if found == word)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Error> {
        if self.take(symbol) {
            return Ok(());
        }
        let found = self.tokens.get(self.at).map_or("the end".to_owned(), |one| format!("{one:?}"));
        Err(self.error(format!("expected {symbol} and found {found}")))
    }

    fn binary(&mut self, level: usize) -> Result<Expr, Error> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) =
            operators.iter().find(|operator| self.is(operator) || self.is_word(operator))
        {
            self.at += 1;
            let bool = self.take_word("bool");
            let on = if self.take_word("on") { Some(self.names()?) } else { None };
            let right = self.binary(level + 1)?;
            left = Expr::Binary {
                operator: (*operator).to_owned(),
                bool,
                on,
                left: Box::new(left),
                right: Box::new(right),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Error> {
        if self.take("-") {
            return Ok(Expr::Negate(Box::new(self.unary()?)));
        }
        let mut expr = self.primary()?;
        if let Some(Token::Range(range)) = self.tokens.get(self.at).cloned() {
            self.at += 1;
            expr = self.ranged(expr, &range)?;
        }
        if self.take_word("offset") {
            let Some(Token::Duration(seconds)) = self.next() else {
                return Err(self.error("offset needs a duration"));
            };
            let Expr::Selector(selector) = &mut expr else {
                return Err(self.error("offset of something that is no selector"));
            };
            selector.offset = seconds;
        }
        Ok(expr)
    }

    fn ranged(&self, expr: Expr, range: &str) -> Result<Expr, Error> {
        let seconds =
            |text| duration(text).ok_or_else(|| self.error(format!("bad duration {text:?}")));
        match (expr, range.split_once(':')) {
            (Expr::Selector(selector), None) => {
                Ok(Expr::Selector(Selector { range: Some(seconds(range)?), ..selector }))
            }
            (expr, Some((range, step))) => Ok(Expr::Subquery {
                expr: Box::new(expr),
                range: seconds(range)?,
                step: seconds(step)?,
            }),
            _ => Err(self.error("a range of something that is no selector")),
        }
    }

    fn primary(&mut self) -> Result<Expr, Error> {
        match self.next() {
            Some(Token::Number(number)) => Ok(Expr::Number(number)),
            Some(Token::Symbol("(")) => {
                let expr = self.binary(0)?;
                self.expect(")")?;
                Ok(expr)
            }
            Some(Token::Word(word)) if AGGREGATES.contains(&word.as_str()) => self.aggregate(word),
            Some(Token::Word(word)) if self.is("(") => self.call(word),
            Some(Token::Word(word)) => self.selector(word),
            Some(token) => Err(self.error(format!("unexpected {token:?}"))),
            None => Err(self.error("unexpected end")),
        }
    }

    fn aggregate(&mut self, operator: String) -> Result<Expr, Error> {
        let by = if self.take_word("by") { self.names()? } else { Vec::new() };
        self.expect("(")?;
        let parameter = if operator == "topk" {
            let parameter = self.binary(0)?;
            self.expect(",")?;
            Some(parameter)
        } else {
            None
        };
        let expr = self.binary(0)?;
        self.expect(")")?;
        Ok(Expr::Aggregate(Box::new(Aggregate { operator, by, parameter, expr })))
    }

    fn call(&mut self, function: String) -> Result<Expr, Error> {
        let Some(arity) = known_function(&function) else {
            return Err(self.error(format!("unknown function {function}")));
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            arguments.push(self.binary(0)?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        if arguments.len() != arity {
            return Err(self.error(format!("{function} takes {arity} arguments")));
        }
        Ok(Expr::Call { function, arguments })
    }

    fn names(&mut self) -> Result<Vec<String>, Error> {
        self.expect("(")?;
        let mut names = Vec::new();
        while let Some(Token::Word(name)) = self.tokens.get(self.at).cloned() {
            self.at += 1;
            names.push(name);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(names)
    }

    fn selector(&mut self, name: String) -> Result<Expr, Error> {
        let mut matchers = Vec::new();
        if self.take("{") {
            while let Some(Token::Word(label)) = self.tokens.get(self.at).cloned() {
                self.at += 1;
                let (operator, value) = match (self.next(), self.next()) {
                    (
                        Some(Token::Symbol(operator @ ("=" | "!=" | "=~" | "!~"))),
                        Some(Token::Text(value)),
                    ) => (operator, value),
                    _ => return Err(self.error(format!("a bad condition on {label}"))),
                };
                let pattern = if operator.ends_with('~') {
                    let pattern = Regex::new(&format!("^(?:{value})$"));
                    Some(pattern.map_err(|_| self.error(format!("a bad pattern {value:?}")))?)
                } else {
                    None
                };
                matchers.push(Matcher { label, operator: operator.to_owned(), value, pattern });
                if !self.take(",") {
                    break;
                }
            }
            self.expect("}")?;
        }
        Ok(Expr::Selector(Selector { name, matchers, range: None, offset: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (expr, message) in [
            ("sum(x", "expected )"),
            ("x >", "unexpected end"),
            ("frobnicate(x)", "unknown function frobnicate"),
            ("rate(x[5q])", "bad duration \"5q\""),
            ("rate(x[5m], 3)", "rate takes 1 arguments"),
            ("x{a~\"b\"}", "unexpected '~'"),
            ("x{a=~\"(\"}", "a bad pattern"),
            ("x y", "unexpected Word(\"y\")"),
        ] {
            let error = parse(expr).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
