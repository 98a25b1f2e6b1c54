//! Words of an expression.

use super::Error;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name, also of a function or an operator in letters.
    Word(String),
    Number(f64),
    Text(String),
    /// What stands in brackets.
    Range(String),
    /// `5m`
    Duration(i64),
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: [&str; 20] = [
    "==", "!=", ">=", "<=", "=~", "!~", "=", ">", "<", "+", "-", "*", "/", "%", "^", "(", ")", "{",
    "}", ",",
];

pub(super) fn lex(expr: &str) -> Result<Vec<Token>, Error> {
    let mut tokens = Vec::new();
    let mut rest = expr.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = if first == '"' {
            text(rest).ok_or_else(|| Error::new("a string without its end", expr))?
        } else if first == '[' {
            let end = rest.find(']').ok_or_else(|| Error::new("[ without ]", expr))?;
            (Token::Range(rest[1..end].to_owned()), end + 1)
        } else if first.is_ascii_digit() {
            number(rest).ok_or_else(|| Error::new("a bad number", expr))?
        } else if first.is_ascii_alphabetic() || first == '_' || first == ':' {
            let end = rest
                .find(|letter: char| !letter.is_ascii_alphanumeric() && !"_:".contains(letter))
                .unwrap_or(rest.len());
            (Token::Word(rest[..end].to_owned()), end)
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.ok_or_else(|| Error::new(format!("unexpected {first:?}"), expr))?;
            (Token::Symbol(symbol), symbol.len())
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn text(rest: &str) -> Option<(Token, usize)> {
    let mut value = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Token::Text(value), at + 1)),
            '\\' => value.push(letters.next()?.1),
            _ => value.push(letter),
        }
    }
    None
}

fn number(rest: &str) -> Option<(Token, usize)> {
    let end = rest
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.')
        .unwrap_or(rest.len());
    let word = &rest[..end];
    let token = match word.parse() {
        Ok(number) => Token::Number(number),
        Err(_) => Token::Duration(duration(word)?),
    };
    Some((token, end))
}

/// Seconds of `1h30m`. Grafana's `$__rate_interval` is taken as five minutes.
pub(super) fn duration(text: &str) -> Option<i64> {
    if text == "$__rate_interval" {
        return Some(300);
    }
    let mut seconds = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let amount: i64 = rest[..digits].parse().ok()?;
        let unit = match rest.as_bytes()[digits] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        seconds += amount * unit;
        rest = &rest[digits + 1..];
    }
    (seconds > 0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up() {
        assert_eq!(duration("1h30m"), Some(5400));
        assert_eq!(duration("7d"), Some(604_800));
        assert_eq!([duration(""), duration("5"), duration("5x"), duration("m")], [None; 4]);
    }
}
